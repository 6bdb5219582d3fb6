import type { IncomingHttpHeaders } from 'node:http'
import { type Clock, toTimestamp } from '../core/clock.ts'

const DEFAULT_MS = 60_000
const LONGEST_MS = 7 * 86_400_000
const SECONDS = /^\d{1,9}(\.\d{1,3})?$/

/** `retry-after`: seconds or a date (RFC 9110, 10.2.3). */
const afterMs = (text: string, nowMs: number): number => (SECONDS.test(text) ? Number(text) * 1000 : Date.parse(text) - nowMs)

/** How long a provider asks to be left alone: by `retry-after`, else by the end of its unified limit (epoch seconds), else a minute. */
export function toWaitMs(headers: IncomingHttpHeaders, nowMs: number): number {
  const reset = headers['anthropic-ratelimit-unified-reset']
  const said = [afterMs((headers['retry-after'] ?? '').trim(), nowMs), Number(reset) * 1000 - nowMs]
  return Math.min(said.find((ms) => Number.isFinite(ms) && ms > 0) ?? DEFAULT_MS, LONGEST_MS)
}

/** Model families that the provider limits for now; each limit is over by itself, by a clock that does not jump. Times are for people. */
export interface FamilyLimits {
  /** Two limits of one family: the later end counts. */
  note(family: string, waitMs: number): number
  /** When it takes requests again, in epoch milliseconds as the clock goes now; null when it does. */
  retryAtMs(family: string): number | null
  /** Family to RFC 3339 time. */
  current(): Readonly<Record<string, string>>
}

interface Limit {
  /** By the monotonic clock. */
  readonly endMs: number
  /** What was said of it when it was noted. */
  readonly saidMs: number
}

/** The clocks differ by fractions from look to look, and a time that people are told should stay the same: another one is said once the wall clock was set. */
const JUMP_MS = 1000

export function createFamilyLimits({ now, monotonic }: Clock): FamilyLimits {
  const limits = new Map<string, Limit>()
  const retryAtMs = (family: string): number | null => {
    const limit = limits.get(family)
    const leftMs = (limit?.endMs ?? 0) - monotonic()
    if (limit === undefined || leftMs <= 0) return null
    const endMs = now() + leftMs
    return Math.abs(endMs - limit.saidMs) < JUMP_MS ? limit.saidMs : endMs
  }
  return {
    note(family, waitMs) {
      const endMs = Math.max(monotonic() + waitMs, limits.get(family)?.endMs ?? 0)
      if (endMs !== limits.get(family)?.endMs) limits.set(family, { endMs, saidMs: Math.round(now() + endMs - monotonic()) })
      return retryAtMs(family) ?? now()
    },
    retryAtMs,
    current: () => Object.fromEntries([...limits.keys()].flatMap((family) => entryOf(family, retryAtMs(family)))),
  }
}

const entryOf = (family: string, endMs: number | null): (readonly [string, string])[] => (endMs === null ? [] : [[family, toTimestamp(endMs)]])
