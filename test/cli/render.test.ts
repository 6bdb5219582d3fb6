import { expect, test } from 'vitest'
import { createOutput } from '../../src/cli/output.ts'
import { ago, fields, size, table } from '../../src/cli/render.ts'
import type { Output } from '../../src/cli/context.ts'

function outputOf(terminal: boolean, env: NodeJS.ProcessEnv = {}, columns = 40): Output {
  const sink = { write: () => undefined, isTTY: terminal, columns }
  return createOutput({ stdout: sink, stderr: sink, env, options: { json: false, quiet: false, dataRoot: undefined } })
}

const ROWS = [
  ['a', 'short', null],
  ['bb', '日本', 'a long last cell that does not fit into the terminal'],
] as const

test('a table on a terminal is aligned, has a header and is cut to the window', () => {
  expect(table(outputOf(true, { NO_COLOR: '1' }), ['ID', 'NAME', 'TEXT'], ROWS).split('\n')).toEqual([
    'ID  NAME   TEXT',
    'a   short  -',
    'bb  日本   a long last cell that does n…',
    '',
  ])
})

test('elsewhere it is tabs and nothing is cut', () => {
  expect(table(outputOf(false), ['ID', 'NAME', 'TEXT'], ROWS)).toBe('a\tshort\t-\nbb\t日本\ta long last cell that does not fit into the terminal\n')
})

test('colours need a terminal and no NO_COLOR', () => {
  expect(outputOf(true).style('red', 'x')).toBe('\x1b[31mx\x1b[0m')
  for (const out of [outputOf(true, { NO_COLOR: '1' }), outputOf(true, { TERM: 'dumb' }), outputOf(false)]) expect(out.style('red', 'x')).toBe('x')
})

test('no cell and no field can hold a control character', () => {
  const evil = 'a\x1b]0;title\x07\nb\tc\u202e'
  for (const out of [outputOf(true, { NO_COLOR: '1' }, 200), outputOf(false)]) {
    for (const text of [table(out, ['ONE'], [[evil]]), fields(out, { evil, nested: { evil } })]) {
      expect(text.replace(/[\t\n]/g, '')).not.toMatch(/[\p{Cc}\p{Cf}]/u)
      expect(text).toContain('\\x1b]0;title\\x07\\nb\\tc\\u{202e}')
    }
  }
})

test('ages and sizes for a glance', () => {
  const now = Date.UTC(2026, 0, 31)
  const before = (ms: number): string => new Date(now - ms).toISOString()
  expect([ago(null, now), ago(before(5_000), now), ago(before(600_000), now), ago(before(7_200_000), now), ago(before(86_400_000 * 9), now)]).toEqual([
    '-',
    '5s',
    '10m',
    '2h',
    '9d',
  ])
  expect([size(0), size(1023), size(1536), size(20 * 1024 ** 2), size(3 * 1024 ** 3)]).toEqual(['0', '1023', '1.5K', '20M', '3.0G'])
})
