import type { Principal } from '../protocol/common.ts'
import type { MessageRow } from '../protocol/rows.ts'
import { actorOf, type BrokerContext, FOUNDER, HOST } from './context.ts'
import type { Delivery } from './delivery.ts'
import type { NewMessage } from './ports.ts'

export type Letter = Pick<NewMessage, 'to' | 'class' | 'body'> & Partial<Pick<NewMessage, 'subject' | 'inReplyTo' | 'deadline' | 'failed'>>

/** What a launch begins with. */
export interface FirstRequest {
  readonly task: string | null
  readonly request: string | null
}

/** Inside a transaction: messages that no limit holds back. */
export interface Post {
  /** Is it somebody who can be written to now? */
  readonly isAddress: (name: string) => boolean
  /** Stores and records a message, and gives it to who waits for it. */
  readonly post: (principal: Principal, letter: Letter) => MessageRow
  /** A NOTE from the host, in closed words and ids; null when there is nobody of that name any more. */
  readonly hostNote: (to: string, subject: string, body: string) => string | null
  /** The first REQUEST of a run, from whoever asked for it; null when there is nothing to say. Belongs to the launch's last transaction. */
  readonly firstRequest: (principal: Principal, instance: string, about: FirstRequest) => string | null
}

type Sender = Pick<NewMessage, 'fromKind' | 'fromRole' | 'fromInstance' | 'fromRun'>

function senderOf(principal: Principal): Sender {
  if (principal.kind === 'session') return { fromKind: 'session', fromRole: principal.role, fromInstance: principal.instance, fromRun: principal.run }
  const name = principal.kind === 'founder' ? FOUNDER : HOST
  return { fromKind: principal.kind, fromRole: name, fromInstance: name, fromRun: null }
}

export function createPost({ store, roster }: BrokerContext, delivery: Delivery): Post {
  const { messages, tasks, trail } = store
  const isAddress = (name: string): boolean => name === FOUNDER || roster().instances.has(name)

  const post: Post['post'] = (principal, letter) => {
    const { to, class: kind, body, subject = null, inReplyTo = null, deadline = null, failed = false } = letter
    const { fromKind, fromRole, fromInstance, fromRun } = senderOf(principal)
    const taker = delivery.taker(to)
    const given = taker?.given ?? null
    const row = messages.insert({ fromKind, fromRole, fromInstance, fromRun, to, class: kind, subject, body, inReplyTo, deadline, failed, given })
    const facts = inReplyTo === null ? { to, class: kind } : { to, class: kind, in_reply_to: inReplyTo }
    trail.append({ kind: 'message.sent', subject: row.id, actor: actorOf(principal), body: facts })
    taker?.take(row)
    return row
  }
  const hostNote: Post['hostNote'] = (to, subject, body) => (isAddress(to) ? post({ kind: 'host' }, { to, class: 'NOTE', subject, body }).id : null)

  const firstRequest: Post['firstRequest'] = (principal, instance, about) => {
    const task = about.task === null ? null : tasks.get(about.task)
    const parts = task === null ? [] : [`Task ${task.id}: ${task.title}`, task.body]
    const body = [...parts, about.request ?? ''].filter((part) => part !== '').join('\n\n')
    if (body === '') return null
    return post(principal, { to: instance, class: 'REQUEST', body, subject: task === null ? null : `task ${task.id}` }).id
  }
  return { isAddress, post, hostNote, firstRequest }
}
