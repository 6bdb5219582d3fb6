import { escapeLine } from '../../core/escape.ts'
import type { ReviewRow } from '../../protocol/rows.ts'
import type { CliContext, CommandSpec, Input, Result } from '../context.ts'
import { afterOf, allPages } from '../follow.ts'
import { oneOf, toUsage } from '../parse.ts'
import { table } from '../render.ts'
import { doneResult, listResult, rowResult } from '../results.ts'

const STATES = ['open', 'approved', 'rejected', 'stale'] as const
const SHORT_OID = 12
const SHORTEST_OID = 7

async function list(context: CliContext, input: Input): Promise<Result> {
  const task = input.text('task')
  const state = STATES.find((name) => name === input.text('state'))
  const only = { ...(task === undefined ? {} : { task }), ...(state === undefined ? {} : { state }) }
  const control = await context.control()
  const rows = await allPages<ReviewRow, string>(
    (after) => control.call('review.list', { ...only, ...afterOf(after) }),
    (row) => row.request,
  )
  const cells = rows.map((row) => [row.request, row.task, row.push, row.commit.slice(0, SHORT_OID), row.requestedBy, row.state, row.reviewer, row.note])
  return listResult(
    rows,
    (row) => row.request,
    () => table(context.out, ['REQUEST', 'TASK', 'PUSH', 'COMMIT', 'BY', 'STATE', 'REVIEWER', 'NOTE'], cells),
  )
}

async function show(context: CliContext, input: Input): Promise<Result> {
  const row = await (await context.control()).call('review.show', { request: input.arg(0) })
  return rowResult(context, row, row.request)
}

/** The commit that is judged: the request's own unless the command line names one; a unique beginning is enough. */
const commitOf = (row: ReviewRow, given: string | undefined): string => (given === undefined || row.commit.startsWith(given) ? row.commit : given)

const judge =
  (verdict: 'approve' | 'reject', word: string) =>
  async (context: CliContext, input: Input): Promise<Result> => {
    const control = await context.control()
    const asked = await control.call('review.show', { request: input.arg(0) })
    const commit = commitOf(asked, input.text('commit'))
    const row = await control.call('review.verdict', { request: asked.request, commit, verdict, note: input.text('note') ?? '' })
    return doneResult(row, `${word} ${commit.slice(0, SHORT_OID)} for ${escapeLine(asked.task)}`, asked.request)
  }

function oid(text: string): string {
  if (!new RegExp(`^[0-9a-f]{${String(SHORTEST_OID)},40}$`).test(text))
    throw toUsage(`${JSON.stringify(text)} is no commit: at least its first ${String(SHORTEST_OID)} of 40 hex digits are needed`)
  return text
}

const VERDICT_OPTIONS = [
  { flags: '--commit <oid>', summary: 'the commit that you have read; another one is refused', parse: oid },
  { flags: '--note <text>', summary: 'what the author should know' },
]

export const commands: readonly CommandSpec[] = [
  {
    name: 'review list',
    summary: 'list the review requests',
    options: [
      { flags: '--task <T>', summary: 'of this task only' },
      { flags: '--state <state>', summary: STATES.join(', '), parse: oneOf(STATES) },
    ],
    run: list,
  },
  { name: 'review show <request>', summary: 'show one review request', run: show },
  { name: 'review approve <request>', summary: 'approve the commit of a request', options: VERDICT_OPTIONS, run: judge('approve', 'approved') },
  { name: 'review reject <request>', summary: 'reject the commit of a request', options: VERDICT_OPTIONS, run: judge('reject', 'rejected') },
]
