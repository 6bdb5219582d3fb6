import { AppError } from '../core/errors.ts'
import { PAGE_BYTES, type SessionPrincipal } from '../protocol/common.ts'
import type { MessageRow, ReceivedMessage } from '../protocol/rows.ts'
import type { BrokerContext } from './context.ts'
import { firstPage, rowBytes } from './pages.ts'
import type { DeliveryPolicy, Given } from './ports.ts'

/** One connection of a run. */
export interface Connection {
  readonly id: number
  readonly principal: SessionPrincipal
  /** It is gone, or its run has ended: nothing is given over it any more. */
  readonly closed: () => boolean
}

interface Waiter {
  readonly link: Link
  readonly max: number
  /** Given to it in the transaction that is open. */
  readonly given: MessageRow[]
  bytes: number
  readonly settle: (messages: readonly MessageRow[]) => void
}

interface Link extends Connection {
  gone: boolean
  revoked: boolean
  /** Was anything given over it? */
  used: boolean
}

export interface Delivery {
  open(principal: SessionPrincipal): Connection
  /** Gives back what the connection received and did not acknowledge. */
  close(connection: Connection): Promise<void>
  /** Inside the end's transaction: nothing is given to the run any more. */
  endRun(run: string): void
  receive(connection: Connection, options: { readonly waitMs: number; readonly max: number }, signal: AbortSignal): Promise<ReceivedMessage[]>
  /** Inside a transaction: the waiting peer that a new message to this instance goes to, if one waits. */
  taker(instance: string): { readonly given: Given; readonly take: (message: MessageRow) => void } | null
  /** Gives what waits for an instance to those who wait. */
  poke(instance: string): Promise<void>
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

const unauthenticated = (): AppError => new AppError('unauthenticated', '')

export function createDelivery({ store }: Pick<BrokerContext, 'store'>, policy: DeliveryPolicy): Delivery {
  const links = new Map<string, Set<Link>>()
  const waiters = new Map<string, Set<Waiter>>()
  /** Instances with a waiter that was passed over: what is new must not overtake what waits. */
  const held = new Set<string>()
  let lastId = 0

  const forget = (waiter: Waiter): void => {
    const { instance } = waiter.link.principal
    const of = waiters.get(instance)
    of?.delete(waiter)
    if (of?.size === 0) {
      waiters.delete(instance)
      held.delete(instance)
    }
  }
  const give = (link: Link, message: MessageRow): void => {
    link.used = true
    store.messages.setDelivered(message.id, { run: link.principal.run, connection: link.id })
  }
  const announce = ({ principal }: Link, messages: number): void => policy.delivered(principal.instance, principal.run, messages)
  /** Hands a message to a waiter; the wait ends once the transaction is durable. */
  const hand = (waiter: Waiter, message: MessageRow): void => {
    waiter.given.push(message)
    waiter.bytes += rowBytes(message)
    waiter.link.used = true
    if (waiter.given.length > 1) return
    store.onRollback(() => {
      waiter.given.length = 0
      waiter.bytes = 0
    })
    store.onCommit(() => {
      announce(waiter.link, waiter.given.length)
      waiter.settle(waiter.given)
    })
  }
  const hasRoom = (waiter: Waiter): boolean => waiter.given.length < waiter.max && waiter.bytes < PAGE_BYTES / 2
  const findWaiter = (instance: string): Waiter | undefined => {
    for (const waiter of waiters.get(instance) ?? []) {
      const { principal, closed } = waiter.link
      if (!closed() && hasRoom(waiter) && policy.mayDeliver(instance, principal.run)) return waiter
    }
    return undefined
  }
  const offer = (instance: string): void => {
    for (let waiter = findWaiter(instance); waiter !== undefined; waiter = findWaiter(instance)) {
      const [message] = store.messages.waiting(instance, 1)
      if (message === undefined) {
        held.delete(instance)
        return
      }
      give(waiter.link, message)
      hand(waiter, message)
    }
    if (waiters.has(instance)) held.add(instance)
  }
  const take = (link: Link, max: number): MessageRow[] => {
    const { instance, run } = link.principal
    if (!policy.mayDeliver(instance, run)) {
      held.add(instance)
      return []
    }
    const rows = firstPage(store.messages.waiting(instance, max))
    for (const row of rows) give(link, row)
    if (rows.length > 0) store.onCommit(() => announce(link, rows.length))
    return rows
  }
  const wait = (link: Link, max: number, settle: Waiter['settle']): Waiter => {
    const waiter: Waiter = { link, max, given: [], bytes: 0, settle }
    const { instance } = link.principal
    const of = waiters.get(instance) ?? new Set()
    waiters.set(instance, of.add(waiter))
    return waiter
  }
  const linkOf = (connection: Connection): Link | undefined => [...(links.get(connection.principal.run) ?? [])].find(({ id }) => id === connection.id)

  const receive: Delivery['receive'] = (connection, { waitMs, max }, signal) =>
    new Promise((resolve, reject) => {
      let waiter: Waiter | undefined
      let timer: NodeJS.Timeout | undefined
      let over = false
      const settle = (messages: readonly MessageRow[]): void => {
        over = true
        clearTimeout(timer)
        signal.removeEventListener('abort', onAbort)
        if (waiter !== undefined) forget(waiter)
        resolve(messages.map(toReceived))
      }
      const onAbort = (): void => settle([])
      const begin = (): MessageRow[] | null => {
        const link = linkOf(connection)
        if (link === undefined || link.revoked) throw unauthenticated()
        if (link.gone || signal.aborted) return []
        const rows = take(link, max)
        if (rows.length > 0 || waitMs === 0) return rows
        // before the transaction is over: what is sent later in it must find the waiter
        const own = wait(link, max, settle)
        waiter = own
        store.onRollback(() => forget(own))
        return null
      }
      const began = (rows: MessageRow[] | null): void => {
        if (rows !== null) return settle(rows)
        if (over) return
        timer = setTimeout(() => settle([]), waitMs)
        signal.addEventListener('abort', onAbort, { once: true })
        if (signal.aborted) onAbort()
      }
      store.write(begin).then(began).catch(reject)
    })

  return {
    open(principal) {
      const link: Link = { id: ++lastId, principal, gone: false, revoked: false, used: false, closed: () => link.gone || link.revoked }
      const of = links.get(principal.run) ?? new Set()
      links.set(principal.run, of.add(link))
      return link
    },
    async close(connection) {
      const link = linkOf(connection)
      if (link === undefined) return
      link.gone = true
      const { run, instance } = link.principal
      const of = links.get(run)
      of?.delete(link)
      if (of?.size === 0) links.delete(run)
      for (const waiter of [...(waiters.get(instance) ?? [])]) if (waiter.link === link) waiter.settle([])
      await store.write(() => {
        if (link.used && store.messages.requeueConnection(run, link.id) > 0) offer(instance)
      })
    },
    endRun(run) {
      const of = [...(links.get(run) ?? [])]
      const set = (revoked: boolean) => (): void => of.forEach((link) => (link.revoked = revoked))
      set(true)()
      store.onRollback(set(false))
      store.onCommit(() => {
        for (const { principal } of of) for (const waiter of [...(waiters.get(principal.instance) ?? [])]) if (waiter.link.revoked) waiter.settle([])
      })
    },
    receive,
    taker(instance) {
      if (!waiters.has(instance)) return null
      if (held.has(instance)) offer(instance)
      const waiter = held.has(instance) ? undefined : findWaiter(instance)
      if (waiter === undefined) {
        held.add(instance)
        return null
      }
      return { given: { run: waiter.link.principal.run, connection: waiter.link.id }, take: (message) => hand(waiter, message) }
    },
    poke: (instance) => store.write(() => offer(instance)),
  }
}
