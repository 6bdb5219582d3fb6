import { escapeLine, escapeText } from '../../core/escape.ts'
import type { TaskRow } from '../../protocol/rows.ts'
import type { CliContext, CommandSpec, Input, Output, Result } from '../context.ts'
import { afterOf, allPages } from '../follow.ts'
import { readText } from '../input.ts'
import { oneOf, toUsage } from '../parse.ts'
import { block, fields, table } from '../render.ts'
import { doneResult, listResult } from '../results.ts'
import { fetchTask } from '../task-fetch.ts'

const STATES = ['open', 'closed'] as const
const stateOf = (text: string | undefined): (typeof STATES)[number] | undefined => STATES.find((state) => state === text)

async function create(context: CliContext, input: Input): Promise<Result> {
  const [id, project, assignee, body] = [input.text('id'), input.text('project'), input.text('assignee'), input.text('body')]
  const params = {
    title: input.arg(0),
    ...(id === undefined ? {} : { id }),
    ...(project === undefined ? {} : { project }),
    ...(assignee === undefined ? {} : { assignee }),
    ...(body === undefined ? {} : { body: await readText(context, body) }),
  }
  const row = await (await context.control()).call('task.create', params)
  return doneResult(row, row.id, row.id)
}

async function list(context: CliContext, input: Input): Promise<Result> {
  const state = stateOf(input.text('state'))
  const control = await context.control()
  const rows = await allPages<TaskRow, string>(
    (after) => control.call('task.list', { ...(state === undefined ? {} : { state }), ...afterOf(after) }),
    (row) => row.id,
  )
  const cells = rows.map((row) => [row.id, row.state, row.assignee, row.project, row.latestPush, row.verdict, row.title])
  return listResult(
    rows,
    (row) => row.id,
    () => table(context.out, ['TASK', 'STATE', 'ASSIGNEE', 'PROJECT', 'PUSH', 'VERDICT', 'TITLE'], cells),
  )
}

function toTaskText(out: Output, { body, ...row }: TaskRow): string {
  return body === '' ? fields(out, row) : `${fields(out, row)}\n${block(escapeText(body)).replace(/^(?=.)/gm, '  ')}`
}

async function show(context: CliContext, input: Input): Promise<Result> {
  const row = await (await context.control()).call('task.show', { task: input.arg(0) })
  return { data: row, human: () => toTaskText(context.out, row), ids: [row.id] }
}

async function assign(context: CliContext, input: Input): Promise<Result> {
  const row = await (await context.control()).call('task.assign', { task: input.arg(0), instance: input.arg(1) })
  return doneResult(row, `${escapeLine(row.id)} is ${escapeLine(row.assignee ?? 'nobody')}'s`, row.id)
}

async function close(context: CliContext, input: Input): Promise<Result> {
  const reason = input.text('reason')
  if (input.flag('override') && reason === undefined) throw toUsage('--override needs a reason', 'mosaic task close TASK --override --reason TEXT')
  const [override, dryRun] = [input.flag('override'), input.flag('dryRun')]
  const params = {
    task: input.arg(0),
    ...(reason === undefined ? {} : { reason }),
    ...(override ? { override } : {}),
    ...(dryRun ? { dryRun } : {}),
  }
  const row = await (await context.control()).call('task.close', params)
  return doneResult(row, `${dryRun ? 'would close' : 'closed'} ${escapeLine(row.id)}`, row.id)
}

export const commands: readonly CommandSpec[] = [
  {
    name: 'task create <title>',
    summary: 'open a task',
    options: [
      { flags: '--id <T>', summary: 'its id (default: the next free one)' },
      { flags: '--project <P>', summary: 'the project that it is about' },
      { flags: '--assignee <instance>', summary: 'who is to do it' },
      { flags: '--body <text>', summary: 'what is to be done; - reads standard input' },
    ],
    examples: ['mosaic task create "Parse the header" --project stack --assignee coder --body - < task.md'],
    run: create,
  },
  { name: 'task list', summary: 'list the tasks', options: [{ flags: '--state <state>', summary: STATES.join(' or '), parse: oneOf(STATES) }], run: list },
  { name: 'task show <task>', summary: 'show one task', run: show },
  { name: 'task assign <task> <instance>', summary: 'give a task to an instance', run: assign },
  {
    name: 'task close <task>',
    summary: 'close a task; a pushed one needs an approving verdict',
    options: [
      { flags: '--override', summary: 'without the verdict, on your word; needs --reason' },
      { flags: '--reason <text>', summary: 'why' },
      { flags: '--dry-run', summary: 'only say whether it may be closed' },
    ],
    run: close,
  },
  {
    name: 'task fetch <task>',
    summary: 'bring its approved commit, as branch mosaic/<task>, into the repository here, else into the project root',
    options: [{ flags: '--unapproved', summary: 'its latest push, whatever was said of it' }],
    run: fetchTask,
  },
]
