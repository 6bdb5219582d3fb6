import type { MessageRow } from '../../protocol/rows.ts'
import type { CliContext, CommandSpec, Input, Result } from '../context.ts'
import { afterOf, allPages, FOLLOW_WAIT_MS } from '../follow.ts'
import { readText } from '../input.ts'
import { messageResult, messagesResult } from '../messages.ts'
import { doneResult } from '../results.ts'

const ACK_AT_ONCE = 200

/** NOTEs and RESULTs ask for nothing: to have been shown is all. A REQUEST is acknowledged by its answer. */
const isToAcknowledge = (row: MessageRow): boolean => row.class !== 'REQUEST' && (row.state === 'accepted' || row.state === 'delivered')

async function acknowledge(context: CliContext, rows: readonly MessageRow[]): Promise<void> {
  const control = await context.control()
  const ids = rows.filter(isToAcknowledge).map((row) => row.id)
  for (let at = 0; at < ids.length; at += ACK_AT_ONCE) await control.call('message.ack', { ids: ids.slice(at, at + ACK_AT_ONCE) })
}

async function readInbox(context: CliContext, after: string | undefined, waitMs?: number): Promise<readonly MessageRow[]> {
  return (await context.control()).call('inbox', { ...afterOf(after), ...(waitMs === undefined ? {} : { waitMs }) })
}

/** Not shown before, or a REQUEST that waits for its answer. */
const isOpen = (row: MessageRow): boolean => (row.class === 'REQUEST' ? row.state !== 'answered' && row.state !== 'dead' : isToAcknowledge(row))

async function followInbox(context: CliContext, isWanted: (row: MessageRow) => boolean): Promise<never> {
  let after: string | undefined
  for (;;) {
    const rows = await readInbox(context, after, FOLLOW_WAIT_MS)
    for (const row of rows.filter(isWanted)) context.out.emit(messageResult(context.out, row))
    await acknowledge(context, rows)
    after = rows.at(-1)?.id ?? after
  }
}

async function inbox(context: CliContext, input: Input): Promise<Result> {
  const isWanted = input.flag('new') ? isOpen : (): boolean => true
  if (input.flag('follow')) return followInbox(context, isWanted)
  const rows = await allPages<MessageRow, string>(
    (after) => readInbox(context, after),
    (row) => row.id,
  )
  return { ...messagesResult(context.out, rows.filter(isWanted)), shown: () => acknowledge(context, rows) }
}

async function answer(context: CliContext, input: Input): Promise<Result> {
  const body = await readText(context, input.arg(1))
  const control = await context.control()
  const request = await control.call('message.show', { id: input.arg(0) })
  const sent = await control.call('message.send', { to: request.from_instance, class: 'RESULT', body, in_reply_to: request.id })
  return doneResult(sent, `answered ${request.id} of ${request.from_instance}: ${sent.id}`, sent.id)
}

export const commands: readonly CommandSpec[] = [
  {
    name: 'inbox',
    summary: 'what agents sent to you',
    options: [
      { flags: '-f, --follow', summary: 'go on with what comes' },
      { flags: '--new', summary: 'only what was not shown before, and REQUESTs without an answer' },
    ],
    run: inbox,
  },
  { name: 'answer <id> <text>', summary: 'answer a REQUEST of an agent; - reads standard input', examples: ['mosaic answer m17 "blue"'], run: answer },
]
