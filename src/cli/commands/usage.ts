import { USAGE_BY, type UsageRow } from '../../protocol/rows.ts'
import type { CliContext, CommandSpec, Input, Result } from '../context.ts'
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

async function usage(context: CliContext, input: Input): Promise<Result> {
  const by = USAGE_BY.find((name) => name === input.text('by')) ?? 'role'
  const sinceMs = input.number('since')
  const rows = await (await context.control()).call('usage', { by, ...(sinceMs === undefined ? {} : { sinceMs }) })
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
    summary: 'tokens that models took, as the bus host counted them',
    options: [
      { flags: '--by <WHAT>', summary: `${USAGE_BY.join(', ')}; role by default`, parse: oneOf(USAGE_BY) },
      { flags: '--since <D>', summary: 'from then on: 12h, or a time', parse: (text) => moment(text) },
    ],
    examples: ['mosaic usage --by task --since 7d'],
    run: usage,
  },
]
