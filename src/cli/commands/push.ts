import { escapeLine, escapeText } from '../../core/escape.ts'
import type { PushShowRow } from '../../protocol/rows.ts'
import type { CliContext, CommandSpec, Input, Output, Result } from '../context.ts'
import { ago, block, fields, table } from '../render.ts'
import { listResult } from '../results.ts'
import { actingLine } from '../task-fetch.ts'

const SHORT_OID = 12

async function list(context: CliContext, input: Input): Promise<Result> {
  const task = input.text('task')
  const rows = await (await context.control()).call('push.list', task === undefined ? {} : { task })
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

function toShowText(out: Output, { files, acting, ...row }: PushShowRow): string {
  const paths = files.map((path) => `  ${escapeLine(path)}${acting.includes(path) ? '  (acts by itself once checked out or installed)' : ''}`)
  return [fields(out, row).trimEnd(), 'files', ...paths, ''].join('\n')
}

async function show(context: CliContext, input: Input): Promise<Result> {
  const row = await (await context.control()).call('push.show', { push: input.arg(0) })
  return { data: row, human: () => toShowText(context.out, row), ids: [row.id] }
}

async function diff(context: CliContext, input: Input): Promise<Result> {
  const row = await (await context.control()).call('push.diff', { push: input.arg(0) })
  const line = actingLine(row.acting)
  if (line !== undefined) context.out.note(`warning: ${line}`)
  return { data: row, human: () => block(escapeText(row.diff)), ids: [row.push] }
}

export const commands: readonly CommandSpec[] = [
  { name: 'push list', summary: 'list the pushes', options: [{ flags: '--task <T>', summary: 'of this task only' }], run: list },
  { name: 'push show <push>', summary: 'show one push', run: show },
  { name: 'push diff <push>', summary: 'what a push changes', run: diff },
]
