import { AppError } from '../core/errors.ts'
import type { MessageSend } from '../protocol/bus.ts'
import type { Principal } from '../protocol/common.ts'
import type { MessageRow, OwedRow } from '../protocol/rows.ts'
import { actorOf, addressOf, type BrokerContext, FOUNDER, HOST, nameOf } from './context.ts'
import type { Delivery } from './delivery.ts'
import { firstPage, lastPage } from './pages.ts'
import type { NewMessage } from './ports.ts'
import { waitFor } from './wait-for.ts'

/** REQUESTs and NOTEs from one run that one recipient may leave unacknowledged. A RESULT is always taken: there is one a REQUEST. */
export const MAILBOX = 200
const LIST_LIMIT = 1000

type Post = Pick<NewMessage, 'to' | 'class' | 'body'> & Partial<Pick<NewMessage, 'subject' | 'inReplyTo' | 'deadline' | 'failed'>>

export interface Waiting {
  readonly waitMs?: number | undefined
  readonly signal?: AbortSignal | undefined
}

export interface MessageRules {
  send(principal: Principal, params: MessageSend): Promise<{ readonly id: string }>
  ack(principal: Principal, ids: readonly string[]): Promise<Readonly<Record<string, never>>>
  /** REQUESTs without RESULT, to and from the principal; of the founder, everybody's. */
  owed(principal: Principal): OwedRow[]
  owedCount(): number
  /** Inside a transaction: a message that no limit holds back. */
  post(principal: Principal, message: Post): MessageRow
  /** Inside a transaction: a NOTE from the host, in closed words and ids; null when there is nobody of that name any more. */
  hostNote(to: string, subject: string, body: string): string | null
  /** Inside the launch's last transaction: the first REQUEST of a run, from whoever asked for it; null when there is nothing to say. */
  firstRequest(principal: Principal, instance: string, about: { readonly task: string | null; readonly request: string | null }): string | null
  show(id: string): MessageRow
  thread(id: string): MessageRow[]
  /** What was sent to the founder: after a message, or without one the latest page. */
  inbox(params: { readonly after?: string | undefined } & Waiting): Promise<MessageRow[]>
  /** The RESULT of a REQUEST; null when there is none within waitMs. */
  result(id: string, waiting: Waiting): Promise<MessageRow | null>
}

const TERMINAL: readonly MessageRow['state'][] = ['answered', 'dead']

/** Does the principal owe an answer to this message, and to that recipient? */
export const isOwed = (request: MessageRow | null, by: string, to: string): request is MessageRow =>
  request?.class === 'REQUEST' && request.to === by && request.from_instance === to && !TERMINAL.includes(request.state)

function senderOf(principal: Principal): Pick<NewMessage, 'fromKind' | 'fromRole' | 'fromInstance' | 'fromRun'> {
  if (principal.kind !== 'session') {
    const name = principal.kind === 'founder' ? FOUNDER : HOST
    return { fromKind: principal.kind, fromRole: name, fromInstance: name, fromRun: null }
  }
  return { fromKind: 'session', fromRole: principal.role, fromInstance: principal.instance, fromRun: principal.run }
}

const notFound = (id: string): AppError => new AppError('message-not-found', `no message has the id ${JSON.stringify(id)}`)

export function createMessageRules({ store, roster, clock }: BrokerContext, delivery: Delivery): MessageRules {
  const { messages, trail } = store
  const isAddress = (name: string): boolean => name === FOUNDER || roster().instances.has(name)

  const post: MessageRules['post'] = (principal, message) => {
    const { to, class: kind, body, subject = null, inReplyTo = null, deadline = null, failed = false } = message
    const { fromKind, fromRole, fromInstance, fromRun } = senderOf(principal)
    const taker = delivery.taker(to)
    const row = messages.insert({ fromKind, fromRole, fromInstance, fromRun, to, class: kind, subject, body, inReplyTo, deadline, failed, given: taker?.given ?? null })
    trail.append({ kind: 'message.sent', subject: row.id, actor: actorOf(principal), body: inReplyTo === null ? { to, class: kind } : { to, class: kind, in_reply_to: inReplyTo } })
    taker?.take(row)
    return row
  }

  /** Throws what the message's class asks for; of a RESULT, returns the REQUEST that it answers. */
  const judge = (principal: Principal, params: MessageSend): MessageRow | null => {
    const me = addressOf(principal)
    const { to, class: kind, in_reply_to: replyTo } = params
    if (kind === 'RESULT') {
      const request = replyTo === undefined ? null : messages.get(replyTo)
      if (!isOwed(request, me, to)) throw new AppError('not-owed', `${to} has no open REQUEST ${JSON.stringify(replyTo ?? null)} to ${me}`)
      return request
    }
    if (replyTo !== undefined) {
      const parent = messages.get(replyTo)
      if (parent === null || (parent.to !== me && parent.from_instance !== me)) throw notFound(replyTo)
    }
    if (principal.kind === 'session' && messages.unread(to, principal.run, MAILBOX) >= MAILBOX) {
      throw new AppError('mailbox-full', `${to} has ${String(MAILBOX)} unread messages of this run`)
    }
    return null
  }
  const sendNow = (principal: Principal, params: MessageSend): MessageRow => {
    const request = judge(principal, params)
    const { to, class: kind, body, subject = null, in_reply_to: inReplyTo = null, deadline = null, failed = false } = params
    const row = post(principal, { to, class: kind, body, subject, inReplyTo, deadline, failed })
    if (request === null) return row
    messages.setState(request.id, 'answered')
    trail.append({ kind: 'message.answered', subject: request.id, actor: actorOf(principal), body: { result: row.id, failed } })
    return row
  }
  const send: MessageRules['send'] = async (principal, params) => {
    if (!isAddress(params.to)) throw new AppError('unknown-recipient', `no instance is called ${JSON.stringify(params.to)}`)
    if (params.failed === true && params.class !== 'RESULT') throw new AppError('invalid-request', 'failed goes with class RESULT')
    const { id } = await store.write(() => sendNow(principal, params))
    return { id }
  }
  const acknowledge = (me: string, ids: readonly string[]): void => {
    for (const id of ids) if (messages.get(id)?.to !== me) throw notFound(id)
    for (const id of ids) messages.acknowledge(id)
  }
  const toOwed = (row: MessageRow): OwedRow => {
    const { id, at, to, subject, deadline } = row
    return { id, at, from: row.from_instance, to, subject, deadline, overdue: deadline !== null && Date.parse(deadline) < clock.now() }
  }
  const thread = (id: string): MessageRow[] => {
    const rows = messages.thread(id, LIST_LIMIT)
    if (rows.length === 0) throw notFound(id)
    return firstPage(rows)
  }
  const show = (id: string): MessageRow => {
    const row = messages.get(id)
    if (row === null) throw notFound(id)
    return row
  }
  return {
    send,
    post,
    show,
    thread,
    async ack(principal, ids) {
      await store.write(() => acknowledge(addressOf(principal), ids))
      return {}
    },
    owed: (principal) => firstPage(messages.owed(principal.kind === 'founder' ? null : nameOf(principal), LIST_LIMIT).map(toOwed)),
    owedCount: () => messages.owedCount(),
    hostNote: (to, subject, body) => (isAddress(to) ? post({ kind: 'host' }, { to, class: 'NOTE', subject, body }).id : null),
    firstRequest(principal, instance, { task, request }) {
      const about = task === null ? null : store.tasks.get(task)
      const parts = about === null ? [] : [`Task ${about.id}: ${about.title}`, about.body]
      const body = [...parts, request ?? ''].filter((part) => part !== '').join('\n\n')
      if (body === '') return null
      return post(principal, { to: instance, class: 'REQUEST', body, subject: about === null ? null : `task ${about.id}` }).id
    },
    async inbox({ after, waitMs = 0, signal }) {
      const look = (): MessageRow[] => messages.inbox(after ?? null, LIST_LIMIT)
      const rows = (await waitFor(store, () => (look().length === 0 ? null : look()), { waitMs, signal })) ?? []
      return after === undefined ? lastPage(rows) : firstPage(rows)
    },
    result(id, waiting) {
      show(id)
      return waitFor(store, () => messages.resultOf(id), waiting)
    },
  }
}
