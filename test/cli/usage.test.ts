import { expect, test } from 'vitest'
import { CONTROL_METHODS } from '../../src/protocol/control.ts'
import type { UsageRow } from '../../src/protocol/rows.ts'
import { openCallServer } from '../client/call-server.ts'
import { onePage } from './rows.ts'
import { runCli } from './run-cli.ts'

const row = (name: string | null): UsageRow => ({
  name,
  requests: 3,
  incomplete: 1,
  inputTokens: 1200,
  outputTokens: 30,
  cacheReadTokens: 4,
  cacheWriteTokens: 5,
})
const ROWS = [row('t-1'), row(null)]

test.each([
  [[], { by: 'role' }],
  [['--by', 'task', '--since', '2026-01-31T00:00:00Z'], { by: 'task', sinceMs: Date.UTC(2026, 0, 31) }],
  [['--by', 'run'], { by: 'run' }],
])('usage %j asks for %j', async (args, params) => {
  await using server = await openCallServer({ usage: onePage(ROWS) })
  const result = await runCli(server.dataRoot, ['usage', ...args])
  expect([result.code, result.stdout]).toEqual([0, 't-1\t3\t1200\t30\t4\t5\t1\n-\t3\t1200\t30\t4\t5\t1\n'])
  const asked = server.calls.filter(({ method }) => method === 'usage')
  expect(asked.map((call) => CONTROL_METHODS.usage.parse(call.params))).toEqual([params, { ...params, after: null }])
})

test('usage as JSON is its rows; another grouping is a mistake of the command line', async () => {
  await using server = await openCallServer({ usage: onePage(ROWS) })
  expect((await runCli(server.dataRoot, ['usage', '--json'])).json).toEqual({ ok: true, data: ROWS })
  const wrong = await runCli(server.dataRoot, ['usage', '--by', 'model; DROP TABLE'])
  expect([wrong.code, server.calls.filter(({ method }) => method === 'usage')]).toEqual([2, expect.objectContaining({ length: 2 })])
})
