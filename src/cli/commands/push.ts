import { escapeLine, escapeText } from '../../core/escape.ts'
import type { PushRow, PushShowRow } from '../../protocol/rows.ts'
import type { CliContext, CommandSpec, Input, Output, Result } from '../context.ts'
import { afterOf, allPages } from '../follow.ts'
import { ago, block, fields, table } from '../render.ts'
import { listResult } from '../results.ts'
import { warningsOf } from '../task-fetch.ts'

const SHORT_OID = 12

async function list(context: CliContext, input: Input): Promise<Result> {
  const task = input.text('task')
  const control = await context.control()
  const rows = await allPages<PushRow, string>(
    (after) => control.call('push.list', { ...(task === undefined ? {} : { task }), ...afterOf(after) }),
    (row) => row.id,
  )
  const cells = rows.map((row) => [
    row.id,
    row.task,
    row.project,
    row.commit.slice(0, SHORT_OID),
    row.instance,
    row.run,
    ago(row.at),
    row.latest ? 'latest' : null,
  ])
  return listResult(
    rows,
    (row) => row.id,
    () => table(context.out, ['PUSH', 'TASK', 'PROJECT', 'COMMIT', 'BY', 'RUN', 'AGE', 'LATEST'], cells),
  )
}

/** The acting ones first: a list that was cut may lack them. */
function toShowText(out: Output, { files, acting, complete, ...row }: PushShowRow): string {
  const known = new Set(acting)
  const acts = acting.map((path) => `  ${escapeLine(path)}  (acts by itself once checked out or installed)`)
  const paths = files.filter((path) => !known.has(path)).map((path) => `  ${escapeLine(path)}`)
  return [fields(out, row).trimEnd(), 'files', ...acts, ...paths, ...warningsOf({ acting: [], complete }), ''].join('\n')
}

async function show(context: CliContext, input: Input): Promise<Result> {
  const row = await (await context.control()).call('push.show', { push: input.arg(0) })
  return { data: row, human: () => toShowText(context.out, row), ids: [row.id] }
}

async function diff(context: CliContext, input: Input): Promise<Result> {
  const row = await (await context.control()).call('push.diff', { push: input.arg(0) })
  for (const line of warningsOf(row)) context.out.note(`warning: ${line}`)
  return { data: row, human: () => block(escapeText(row.diff)), ids: [row.push] }
}

export const commands: readonly CommandSpec[] = [
  { name: 'push list', summary: 'list the pushes', options: [{ flags: '--task <T>', summary: 'of this task only' }], run: list },
  { name: 'push show <push>', summary: 'show one push', run: show },
  { name: 'push diff <push>', summary: 'what a push changes', run: diff },
]
