import type { Clock } from '../core/clock.ts'
import { HOUR_MS } from '../core/duration.ts'
import { AppError } from '../core/errors.ts'
import type { Principal } from '../protocol/common.ts'
import type { BrokerStore } from './ports.ts'

/** Far above honest work, and little enough that a run in a loop does not fill the disk. */
const AN_HOUR = { records: 20_000, bytes: 64 * 1024 * 1024 }

/** What one run may make the store write in an hour, whatever it does. In memory: no run outlives its host. */
export interface Budget {
  /** Throws `too-many-records` when the hour of a session is full; the act that fills it is the last. The founder has no limit. */
  assertRoom(principal: Principal): void
  spend(run: string | null, records: number, bytes: number): void
  forget(run: string): void
}

export function createBudget(clock: Clock, anHour: typeof AN_HOUR = AN_HOUR): Budget {
  const spent = new Map<string, { endMs: number; records: number; bytes: number }>()
  return {
    assertRoom(principal) {
      const hour = principal.kind === 'session' ? spent.get(principal.run) : undefined
      if (hour === undefined || hour.endMs <= clock.monotonic()) return
      if (hour.records < anHour.records && hour.bytes < anHour.bytes) return
      throw new AppError('too-many-records', 'this run has had as much recorded as an hour allows')
    },
    spend(run, records, bytes) {
      if (run === null) return
      const nowMs = clock.monotonic()
      let hour = spent.get(run)
      if (hour === undefined || hour.endMs <= nowMs) spent.set(run, (hour = { endMs: nowMs + HOUR_MS, records: 0, bytes: 0 }))
      hour.records += records
      hour.bytes += bytes
    },
    forget: (run) => void spent.delete(run),
  }
}

/** A store that charges what a run has it write to that run: records, and the texts that runs choose the length of. */
export function createMetered<Store extends BrokerStore>(store: Store, budget: Budget): Store {
  const { trail, messages } = store
  return {
    ...store,
    trail: {
      ...trail,
      append(entry) {
        const row = trail.append(entry)
        budget.spend(entry.actor.run, 1, Buffer.byteLength(JSON.stringify(entry.body)))
        return row
      },
    },
    messages: {
      ...messages,
      insert(message) {
        const row = messages.insert(message)
        budget.spend(message.fromRun, 1, Buffer.byteLength(message.body) + Buffer.byteLength(message.subject ?? ''))
        return row
      },
    },
  }
}
