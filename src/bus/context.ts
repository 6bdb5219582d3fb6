import { type Clock, toTimestamp } from '../core/clock.ts'
import type { Failpoint } from '../core/failpoint.ts'
import type { Log } from '../core/log.ts'
import type { Principal } from '../protocol/common.ts'
import type { Actor, BrokerStore, Roster } from './ports.ts'

/** What every part of the broker works with. */
export interface BrokerContext {
  readonly store: BrokerStore
  readonly roster: () => Roster
  readonly clock: Clock
  readonly log: Log
  /** Passed by name inside a transaction, before it is durable, and after it, before it is answered. */
  readonly failpoint?: Failpoint
}

export const FOUNDER = 'founder'
export const HOST = 'host'

/** Who a principal is in the trail. */
export function actorOf(principal: Principal): Actor {
  if (principal.kind === 'session') return { kind: 'session', name: principal.instance, run: principal.run }
  return principal.kind === 'founder' ? { kind: 'founder', name: principal.name, run: null } : { kind: 'host', name: HOST, run: null }
}

/** The name under which a principal sends, is sent to, creates and reviews. */
export function nameOf(principal: Principal): string {
  if (principal.kind === 'session') return principal.instance
  return principal.kind === 'founder' ? principal.name : HOST
}

/** Where messages to a principal go. */
export const addressOf = (principal: Principal): string => (principal.kind === 'founder' ? FOUNDER : nameOf(principal))

export const stampOf = (clock: Clock): string => toTimestamp(clock.now())
