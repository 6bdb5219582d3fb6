import type { ControlClient } from '../../client/control.ts'
import { escapeLine } from '../../core/escape.ts'
import type { TimelineRow } from '../../protocol/rows.ts'
import type { CliContext, CommandSpec, Input, Result } from '../context.ts'
import { afterOf, allPages, FOLLOW_WAIT_MS } from '../follow.ts'
import { moment } from '../parse.ts'
import { shortTime, table, toCell } from '../render.ts'
import { listResult } from '../results.ts'

type Params = { readonly sinceMs?: number; readonly task?: string }

const HEADER = ['AT', 'KIND', 'INSTANCE', 'RUN', 'TASK', 'WHAT']
const toCells = (row: TimelineRow): (string | null)[] => [shortTime(row.at), row.kind, row.instance, row.run, row.task, row.text]
const toLine = (row: TimelineRow): string => `${toCells(row).slice(0, -1).map(toCell).join('  ')}  ${escapeLine(row.text)}`

/** Waits until the trail has grown past `after`: everything in the timeline stands there too. */
async function waitForNews(control: ControlClient, after: number): Promise<number> {
  for (;;) {
    const news = await control.call('trail', { after, limit: 1000, waitMs: FOLLOW_WAIT_MS })
    const last = news.at(-1)
    if (last !== undefined) return last.seq
  }
}

const pageOf = (control: ControlClient, params: Params) => (after: string | undefined) => control.call('timeline', { ...params, ...afterOf(after) })

const show = (context: CliContext, rows: readonly TimelineRow[]): void => {
  for (const row of rows) context.out.emit({ data: row, human: () => toLine(row), ids: row.ref === null ? [] : [row.ref] })
}

async function followTimeline(context: CliContext, params: Params): Promise<never> {
  const control = await context.control()
  const page = pageOf(control, params)
  let seq = (await control.call('trail.head', {})).records
  let after: string | undefined
  for (;;) {
    const rows = await page(after)
    show(context, rows)
    after = rows.at(-1)?.cursor ?? after
    if (rows.length === 0) seq = await waitForNews(control, seq)
  }
}

async function timeline(context: CliContext, input: Input): Promise<Result> {
  const [sinceMs, task] = [input.number('since'), input.text('task')]
  const params = { ...(sinceMs === undefined ? {} : { sinceMs }), ...(task === undefined ? {} : { task }) }
  if (input.flag('follow')) return followTimeline(context, params)
  const rows = await allPages(pageOf(await context.control(), params), (row) => row.cursor)
  return listResult(
    rows,
    (row) => row.ref ?? row.run ?? row.at,
    () => table(context.out, HEADER, rows.map(toCells)),
  )
}

export const commands: readonly CommandSpec[] = [
  {
    name: 'timeline',
    summary: 'what happened, in one readable list',
    options: [
      { flags: '--since <D>', summary: 'from then on: 12h, or a time', parse: (text) => moment(text) },
      { flags: '--task <T>', summary: 'of this task only' },
      { flags: '-f, --follow', summary: 'go on with what comes' },
    ],
    examples: ['mosaic timeline --since 12h'],
    run: timeline,
  },
]
