import { USAGE_BY, type UsageRow } from '../../protocol/rows.ts'
import type { CliContext, CommandSpec, Input, Result } from '../context.ts'
import { afterOf, allPages } from '../follow.ts'
import { moment, oneOf } from '../parse.ts'
import { table } from '../render.ts'
import { listResult } from '../results.ts'

const toCells = (row: UsageRow): (string | number | null)[] => [
  row.name,
  row.requests,
  row.inputTokens,
  row.outputTokens,
  row.cacheReadTokens,
  row.cacheWriteTokens,
  row.incomplete,
]

const tokensOf = (row: UsageRow): number => row.inputTokens + row.outputTokens + row.cacheReadTokens + row.cacheWriteTokens

async function usage(context: CliContext, input: Input): Promise<Result> {
  const by = USAGE_BY.find((name) => name === input.text('by')) ?? 'role'
  const sinceMs = input.number('since')
  const control = await context.control()
  const rows = await allPages<UsageRow, string | null>(
    (after) => control.call('usage', { by, ...(sinceMs === undefined ? {} : { sinceMs }), ...afterOf(after) }),
    (row) => row.name,
  )
  rows.sort((one, other) => tokensOf(other) - tokensOf(one))
  const header = [by.toUpperCase(), 'REQUESTS', 'INPUT', 'OUTPUT', 'CACHE READ', 'CACHE WRITTEN', 'INCOMPLETE']
  return listResult(
    rows,
    (row) => row.name ?? '-',
    () => table(context.out, header, rows.map(toCells)),
  )
}

export const commands: readonly CommandSpec[] = [
  {
    name: 'usage',
    summary: 'tokens that models took, as the bus host counted them, the most first',
    options: [
      { flags: '--by <WHAT>', summary: `${USAGE_BY.join(', ')}; role by default`, parse: oneOf(USAGE_BY) },
      { flags: '--since <D>', summary: 'from then on: 12h, or a time', parse: (text) => moment(text) },
    ],
    examples: ['mosaic usage --by task --since 7d'],
    run: usage,
  },
]
