import { CODES } from '../../core/codes.ts'
import { escapeLine } from '../../core/escape.ts'
import type { LaunchEvent } from '../../protocol/common.ts'
import type { LogRow } from '../../protocol/rows.ts'
import type { CliContext, CommandSpec, Input, Result } from '../context.ts'
import { afterOf, allPages, follow } from '../follow.ts'
import { assertWord, integer, oneOf } from '../parse.ts'
import { shortTime, table, toCell } from '../render.ts'
import { listResult, rowResult } from '../results.ts'

const EVENTS: readonly LaunchEvent[] = ['launch', 'refused', 'end', 'checkout-kept']

const COMMON: ReadonlySet<string> = new Set(['seq', 'at', 'event', 'run', 'instance'])

/** What is particular to its event, as `name=value`. */
function detailsOf(row: LogRow): string {
  return Object.entries(row)
    .filter(([name, value]) => !COMMON.has(name) && value !== null)
    .map(([name, value]) => `${name}=${toCell(value)}`)
    .join(' ')
}

const toLine = (row: LogRow): string =>
  `${String(row.seq)}  ${shortTime(row.at)}  ${row.event}  ${escapeLine(row.instance)}  ${toCell(row.run)}  ${detailsOf(row)}`

async function log(context: CliContext, input: Input): Promise<Result> {
  const event = EVENTS.find((name) => name === input.text('event'))
  const code = input.text('code')
  if (code !== undefined) assertWord(code, Object.keys(CODES), 'code')
  const only = { ...(event === undefined ? {} : { event }), ...(code === undefined ? {} : { code }) }
  const control = await context.control()
  const page = (after: number | undefined, waitMs: number | undefined): Promise<readonly LogRow[]> =>
    control.call('log', { ...only, ...afterOf(after), ...(waitMs === undefined ? {} : { waitMs }) })
  const cursorOf = (row: LogRow): number => row.seq
  if (input.flag('follow')) return follow(context, page, cursorOf, (row) => ({ data: row, human: () => toLine(row), ids: [String(row.seq)] }))
  const rows = await allPages(page, cursorOf)
  const cells = rows.map((row) => [row.seq, shortTime(row.at), row.event, row.instance, row.run, detailsOf(row)])
  return listResult(
    rows,
    (row) => String(row.seq),
    () => table(context.out, ['SEQ', 'AT', 'EVENT', 'INSTANCE', 'RUN', 'DETAILS'], cells),
  )
}

async function explain(context: CliContext, input: Input): Promise<Result> {
  const seq = integer(input.arg(0))
  const facts = await (await context.control()).call('log.explain', { seq })
  return rowResult(context, facts, input.arg(0))
}

export const commands: readonly CommandSpec[] = [
  {
    name: 'log',
    summary: 'the launch log: launches, refusals, ends',
    options: [
      { flags: '-f, --follow', summary: 'go on with what comes' },
      { flags: '--event <E>', summary: EVENTS.join(', '), parse: oneOf(EVENTS) },
      { flags: '--code <C>', summary: 'refusals with this code' },
    ],
    run: log,
  },
  { name: 'log explain <seq>', summary: 'which rule decided, with its numbers', run: explain },
]
