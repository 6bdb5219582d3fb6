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

export function createFamilyLimits({ now, monotonic }: Clock): FamilyLimits {
  const ends = new Map<string, number>()
  const retryAtMs = (family: string): number | null => {
    const leftMs = (ends.get(family) ?? 0) - monotonic()
    return leftMs <= 0 ? null : now() + leftMs
  }
  return {
    note(family, waitMs) {
      const end = Math.max(monotonic() + waitMs, ends.get(family) ?? 0)
      ends.set(family, end)
      return now() + end - monotonic()
    },
    retryAtMs,
    current: () => Object.fromEntries([...ends.keys()].flatMap((family) => entryOf(family, retryAtMs(family)))),
  }
}

const entryOf = (family: string, endMs: number | null): (readonly [string, string])[] => (endMs === null ? [] : [[family, toTimestamp(endMs)]])
