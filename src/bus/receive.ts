import { AppError } from '../core/errors.ts'
import type { MessageRow, ReceivedMessage } from '../protocol/rows.ts'
import type { Connection, Links, Link } from './links.ts'
import type { BrokerStore } from './ports.ts'
import type { Waiter, Waiters } from './waiters.ts'

export interface ReceiveOptions {
  /** How long to wait for a message; 0: not at all. */
  readonly waitMs: number
  readonly max: number
}

export type Receive = (connection: Connection, options: ReceiveOptions, signal: AbortSignal) => Promise<ReceivedMessage[]>

interface ReceiveDeps {
  readonly store: Pick<BrokerStore, 'write' | 'onRollback'>
  readonly links: Links
  readonly waiters: Waiters
  /** Inside a transaction: takes what waits already. */
  readonly take: (link: Link, max: number) => MessageRow[]
}

const toReceived = ({ id, from_role, from_instance, from_run, class: kind, body, subject, in_reply_to, at }: MessageRow): ReceivedMessage => ({
  id,
  from_role,
  from_instance,
  from_run,
  class: kind,
  body,
  subject,
  in_reply_to,
  at,
})

/** Takes what waits, or else waits. A message that is given and whose reply is lost is given back when the connection closes. */
export function createReceive({ store, links, waiters, take }: ReceiveDeps): Receive {
  /** What is there, or null once the waiter is registered: within the transaction, since what is sent later in it must find the waiter. */
  const begin = (
    connection: Connection,
    { waitMs, max }: ReceiveOptions,
    signal: AbortSignal,
    settle: Waiter['settle'],
    waiting: (waiter: Waiter) => void,
  ): MessageRow[] | null => {
    const link = links.find(connection)
    if (link === undefined || link.revoked) throw new AppError('unauthenticated', '')
    if (link.gone || signal.aborted) return []
    const rows = take(link, max)
    if (rows.length > 0 || waitMs === 0) return rows
    const waiter: Waiter = { link, max, given: [], bytes: 0, settle }
    waiters.add(waiter)
    waiting(waiter)
    store.onRollback(() => waiters.remove(waiter))
    return null
  }
  return (connection, options, signal) =>
    new Promise((resolve, reject) => {
      let waiter: Waiter | undefined
      let timer: NodeJS.Timeout | undefined
      let over = false
      const settle = (messages: readonly MessageRow[]): void => {
        over = true
        clearTimeout(timer)
        signal.removeEventListener('abort', giveUp)
        if (waiter !== undefined) waiters.remove(waiter)
        resolve(messages.map(toReceived))
      }
      const giveUp = (): void => settle([])
      const began = (rows: MessageRow[] | null): void => {
        if (rows !== null) settle(rows)
        if (over) return
        timer = setTimeout(giveUp, options.waitMs)
        signal.addEventListener('abort', giveUp, { once: true })
        if (signal.aborted) giveUp()
      }
      store
        .write(() => begin(connection, options, signal, settle, (own) => (waiter = own)))
        .then(began)
        .catch(reject)
    })
}
