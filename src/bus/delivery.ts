import type { SessionPrincipal } from '../protocol/common.ts'
import type { MessageRow } from '../protocol/rows.ts'
import { createAllowance } from './allowance.ts'
import type { BrokerContext } from './context.ts'
import { type Connection, createLinks, type Link, type Links } from './links.ts'
import { firstPage } from './pages.ts'
import type { BrokerStore, DeliveryPolicy, Given } from './ports.ts'
import { createReceive, type Receive } from './receive.ts'
import { createWaiters, type Waiters } from './waiters.ts'

/** Who a new message goes to at once. */
export interface Taker {
  readonly given: Given
  readonly take: (message: MessageRow) => void
}

export interface Delivery {
  open(principal: SessionPrincipal): Connection
  /** Gives back what the connection received and did not acknowledge. */
  close(connection: Connection): Promise<void>
  /** Inside the end's transaction: nothing is given to the run any more. */
  endRun(run: string): void
  readonly receive: Receive
  /** Inside a transaction: the peer that a new message to this instance is given to, if one waits and may have it. */
  taker(instance: string): Taker | null
  /** Gives what waits for an instance to those who wait. */
  poke(instance: string): Promise<void>
}

/** Inside the end's transaction: from now on nothing is given to the run; its waits are over once the end is durable. */
function revoke(store: Pick<BrokerStore, 'onCommit' | 'onRollback'>, links: Links, waiters: Waiters, run: string): void {
  const ended = links.of(run)
  const set = (revoked: boolean): void => {
    for (const link of ended) link.revoked = revoked
  }
  set(true)
  store.onRollback(() => set(false))
  store.onCommit(() => {
    for (const { principal } of ended) for (const waiter of waiters.of(principal.instance)) if (waiter.link.revoked) waiter.settle([])
  })
}

export function createDelivery({ store }: Pick<BrokerContext, 'store'>, policy: DeliveryPolicy): Delivery {
  const links = createLinks()
  const allowance = createAllowance(store, policy)
  const waiters = createWaiters(store, allowance)
  /** Instances for which something waits though somebody waits for it: what is new must not overtake it. */
  const held = new Set<string>()

  const give = (link: Link, message: MessageRow): void => {
    link.used = true
    store.messages.setDelivered(message.id, { run: link.principal.run, connection: link.id })
  }
  const offer = (instance: string): void => {
    for (let waiter = waiters.find(instance); waiter !== undefined; waiter = waiters.find(instance)) {
      const [message] = store.messages.waiting(instance, 1)
      if (message === undefined) {
        held.delete(instance)
        return
      }
      give(waiter.link, message)
      waiters.hand(waiter, message)
    }
    if (waiters.of(instance).length > 0) held.add(instance)
  }
  const take = (link: Link, max: number): MessageRow[] => {
    const { instance, run } = link.principal
    const left = allowance.left(instance, run)
    if (left <= 0) held.add(instance)
    const rows = left <= 0 ? [] : firstPage(store.messages.waiting(instance, Math.min(max, left)))
    for (const row of rows) give(link, row)
    if (rows.length > 0) allowance.take(instance, run, rows.length)
    return rows
  }
  const taker = (instance: string): Taker | null => {
    if (waiters.of(instance).length === 0) return null
    if (held.has(instance)) offer(instance)
    const waiter = held.has(instance) ? undefined : waiters.find(instance)
    if (waiter !== undefined) return { given: { run: waiter.link.principal.run, connection: waiter.link.id }, take: (message) => waiters.hand(waiter, message) }
    held.add(instance)
    return null
  }
  const close = async (connection: Connection): Promise<void> => {
    const link = links.find(connection)
    if (link === undefined) return
    link.gone = true
    links.remove(link)
    const { run, instance } = link.principal
    for (const waiter of waiters.of(instance)) if (waiter.link === link) waiter.settle([])
    await store.write(() => {
      if (link.used && store.messages.requeueConnection(run, link.id) > 0) offer(instance)
    })
  }
  return {
    open: (principal) => links.open(principal),
    close,
    endRun: (run) => revoke(store, links, waiters, run),
    receive: createReceive({ store, links, waiters, take }),
    taker,
    poke: (instance) => store.write(() => offer(instance)),
  }
}
