import { AppError } from '../core/errors.ts'
import type { MessageSend } from '../protocol/bus.ts'
import type { Principal } from '../protocol/common.ts'
import type { MessageRow } from '../protocol/rows.ts'
import { actorOf, addressOf, type BrokerContext } from './context.ts'
import { createMailbox, type Mailbox, messageNotFound } from './mailbox.ts'
import type { Letter, Post } from './post.ts'
import { isOwed } from './rules.ts'

/** REQUESTs and NOTEs from one run that one recipient may leave unacknowledged. A RESULT is always taken: there is one a REQUEST. */
export const MAILBOX = 200

export interface MessageRules extends Mailbox, Pick<Post, 'hostNote' | 'firstRequest'> {
  send(principal: Principal, params: MessageSend): Promise<{ readonly id: string }>
  /** Acknowledges messages to the principal; all of them or, when one is not its own, none. */
  ack(principal: Principal, ids: readonly string[]): Promise<Readonly<Record<string, never>>>
}

type Messages = BrokerContext['store']['messages']

const toLetter = ({ to, class: kind, body, subject, in_reply_to: inReplyTo, deadline, failed }: MessageSend): Letter => ({
  to,
  class: kind,
  body,
  subject: subject ?? null,
  inReplyTo: inReplyTo ?? null,
  deadline: deadline ?? null,
  failed: failed ?? false,
})

/** The REQUEST that this RESULT answers; throws `not-owed` when there is none. */
function findOwed(messages: Messages, me: string, { to, in_reply_to: id }: MessageSend): MessageRow {
  const request = id === undefined ? null : messages.get(id)
  if (!isOwed(request, me, to)) throw new AppError('not-owed', `${to} has no open REQUEST ${JSON.stringify(id ?? null)} to ${me}`)
  return request
}

/** A reply names a message from or to its sender. */
function assertReply(messages: Messages, me: string, id: string): void {
  const parent = messages.get(id)
  if (parent === null || (parent.to !== me && parent.from_instance !== me)) throw messageNotFound(id)
}

export function createMessageRules(context: BrokerContext, { post, isAddress, hostNote, firstRequest }: Post): MessageRules {
  const { store } = context
  const { messages, trail } = store

  const refusalOf = ({ to, class: kind, failed }: MessageSend): AppError | null => {
    if (!isAddress(to)) return new AppError('unknown-recipient', `no instance is called ${JSON.stringify(to)}`)
    return failed === true && kind !== 'RESULT' ? new AppError('invalid-request', 'failed goes with class RESULT') : null
  }
  const assertRoom = (principal: Principal, to: string): void => {
    if (principal.kind !== 'session' || messages.unread(to, principal.run, MAILBOX) < MAILBOX) return
    throw new AppError('mailbox-full', `${to} has ${String(MAILBOX)} unread messages of this run`)
  }
  const sendMessage = (principal: Principal, params: MessageSend): string => {
    if (params.in_reply_to !== undefined) assertReply(messages, addressOf(principal), params.in_reply_to)
    assertRoom(principal, params.to)
    return post(principal, toLetter(params)).id
  }
  const sendResult = (principal: Principal, params: MessageSend): string => {
    const request = findOwed(messages, addressOf(principal), params)
    const { id } = post(principal, toLetter(params))
    messages.setState(request.id, 'answered')
    trail.append({ kind: 'message.answered', subject: request.id, actor: actorOf(principal), body: { result: id, failed: params.failed ?? false } })
    return id
  }
  const acknowledge = (me: string, ids: readonly string[]): void => {
    for (const id of ids) if (messages.recipientOf(id) !== me) throw messageNotFound(id)
    for (const id of ids) messages.acknowledge(id)
  }
  return {
    ...createMailbox(context),
    hostNote,
    firstRequest,
    send(principal, params) {
      const refused = refusalOf(params)
      if (refused !== null) return Promise.reject(refused)
      return store.write(() => ({ id: (params.class === 'RESULT' ? sendResult : sendMessage)(principal, params) }))
    },
    async ack(principal, ids) {
      await store.write(() => acknowledge(addressOf(principal), ids))
      return {}
    },
  }
}
