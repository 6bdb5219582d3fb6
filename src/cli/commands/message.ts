import type { MessageClass } from '../../protocol/common.ts'
import type { MessageRow, OwedRow } from '../../protocol/rows.ts'
import type { CliContext, CommandSpec, Input, Result } from '../context.ts'
import { afterOf, allPages } from '../follow.ts'
import { readText } from '../input.ts'
import { messageResult, messagesResult } from '../messages.ts'
import { assertText, deadline, oneOf, toUsage } from '../parse.ts'
import { ago, table } from '../render.ts'
import { doneResult, listResult } from '../results.ts'

const CLASSES: readonly MessageClass[] = ['REQUEST', 'RESULT', 'NOTE']
const isClass = (text: string | undefined): text is MessageClass => CLASSES.some((name) => name === text)

async function send(context: CliContext, input: Input): Promise<Result> {
  const type = input.text('class')
  const to = input.text('to')
  if (!isClass(type) || to === undefined) throw toUsage('a message needs --to and --class', 'mosaic message send --help')
  const [subject, replyTo, due] = [input.text('subject'), input.text('inReplyTo'), input.text('deadline')]
  if (type === 'RESULT' && replyTo === undefined) throw toUsage('a RESULT names the REQUEST that it answers: --in-reply-to ID', 'mosaic message owed')
  if (type !== 'REQUEST' && due !== undefined) throw toUsage(`--deadline goes with --class REQUEST, and this is a ${type}`)
  if (type !== 'RESULT' && input.flag('failed')) throw toUsage(`--failed goes with --class RESULT, and this is a ${type}`)
  const body = await readText(context, input.arg(0))
  if (type === 'REQUEST') assertText(body, 'the REQUEST')
  const params = {
    to,
    class: type,
    body,
    ...(subject === undefined ? {} : { subject }),
    ...(replyTo === undefined ? {} : { in_reply_to: replyTo }),
    ...(due === undefined ? {} : { deadline: due }),
    ...(input.flag('failed') ? { failed: true } : {}),
  }
  const sent = await (await context.control()).call('message.send', params)
  return doneResult(sent, sent.id, sent.id)
}

async function owed(context: CliContext): Promise<Result> {
  const control = await context.control()
  const rows = await allPages<OwedRow, string>(
    (after) => control.call('message.owed', afterOf(after)),
    (row) => row.id,
  )
  const cells = rows.map((row) => [row.id, row.to, row.from, ago(row.at), row.overdue ? 'overdue' : (row.deadline ?? '-'), row.subject])
  return listResult(
    rows,
    (row) => row.id,
    () => table(context.out, ['REQUEST', 'OWED BY', 'TO', 'AGE', 'DEADLINE', 'SUBJECT'], cells),
  )
}

async function thread(context: CliContext, input: Input): Promise<Result> {
  const control = await context.control()
  const rows = await allPages<MessageRow, string>(
    (after) => control.call('message.thread', { id: input.arg(0), ...afterOf(after) }),
    (row) => row.id,
  )
  return messagesResult(context.out, rows)
}

export const commands: readonly CommandSpec[] = [
  {
    name: 'message send <text>',
    summary: 'send a message; - reads standard input',
    options: [
      { flags: '--to <instance>', summary: 'who gets it', required: true },
      { flags: '--class <class>', summary: CLASSES.join(', '), required: true, parse: oneOf(CLASSES) },
      { flags: '--subject <S>', summary: 'one line' },
      { flags: '--in-reply-to <id>', summary: 'with RESULT: the REQUEST that it answers' },
      { flags: '--deadline <D>', summary: 'with REQUEST: until when', parse: deadline },
      { flags: '--failed', summary: 'with RESULT: it did not work' },
    ],
    examples: ['mosaic message send --to coder --class NOTE "main has moved"'],
    run: send,
  },
  {
    name: 'message show <id>',
    summary: 'show one message',
    run: async (context, input) => messageResult(context.out, await (await context.control()).call('message.show', { id: input.arg(0) })),
  },
  {
    name: 'message thread <id>',
    summary: 'show a REQUEST with everything that answers it',
    run: thread,
  },
  { name: 'message owed', summary: 'who owes an answer, since when', run: owed },
]
