import { PAGE_BYTES } from '../protocol/common.ts'
import type { MessageRow } from '../protocol/rows.ts'
import type { Allowance } from './allowance.ts'
import type { Link } from './links.ts'
import { rowBytes } from './pages.ts'
import type { BrokerStore } from './ports.ts'

/** A receive that waits. */
export interface Waiter {
  readonly link: Link
  readonly max: number
  /** Given to it in the transaction that is open. */
  readonly given: MessageRow[]
  bytes: number
  readonly settle: (messages: readonly MessageRow[]) => void
}

export interface Waiters {
  /** From now on the waiter is found. */
  add(waiter: Waiter): void
  remove(waiter: Waiter): void
  of(instance: string): readonly Waiter[]
  /** The first that may be given something and has room. */
  find(instance: string): Waiter | undefined
  /** Inside a transaction: gives a message, already marked as delivered; the wait ends once that is durable. */
  hand(waiter: Waiter, message: MessageRow): void
}

const hasRoom = ({ given, max, bytes }: Waiter): boolean => given.length < max && bytes < PAGE_BYTES / 2

export function createWaiters(store: Pick<BrokerStore, 'onCommit' | 'onRollback'>, allowance: Allowance): Waiters {
  const waiters = new Map<string, Set<Waiter>>()
  const of = (instance: string): readonly Waiter[] => [...(waiters.get(instance) ?? [])]
  return {
    of,
    add(waiter) {
      const { instance } = waiter.link.principal
      waiters.set(instance, (waiters.get(instance) ?? new Set()).add(waiter))
    },
    remove(waiter) {
      const { instance } = waiter.link.principal
      const left = waiters.get(instance)
      left?.delete(waiter)
      if (left?.size === 0) waiters.delete(instance)
    },
    find: (instance) => of(instance).find((waiter) => !waiter.link.closed() && hasRoom(waiter) && allowance.left(instance, waiter.link.principal.run) > 0),
    hand(waiter, message) {
      waiter.given.push(message)
      waiter.bytes += rowBytes(message)
      waiter.link.used = true
      const { instance, run } = waiter.link.principal
      allowance.take(instance, run, 1)
      if (waiter.given.length > 1) return
      store.onRollback(() => {
        waiter.given.length = 0
        waiter.bytes = 0
      })
      store.onCommit(() => waiter.settle(waiter.given))
    },
  }
}
