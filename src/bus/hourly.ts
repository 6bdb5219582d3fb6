import type { Clock } from '../core/clock.ts'
import { HOUR_MS } from '../core/duration.ts'

/** So many acts in any hour for each key. In memory: its keys are runs, and no run outlives its host. */
export interface Hourly {
  /** Counts an act; false, and not counted, when the hour is full. */
  take(key: string): boolean
  forget(key: string): void
}

export function createHourly(clock: Clock, limit: number): Hourly {
  const times = new Map<string, number[]>()
  return {
    take(key) {
      const nowMs = clock.monotonic()
      const recent = (times.get(key) ?? []).filter((at) => at > nowMs - HOUR_MS)
      const free = recent.length < limit
      if (free) recent.push(nowMs)
      times.set(key, recent)
      return free
    },
    forget: (key) => void times.delete(key),
  }
}
