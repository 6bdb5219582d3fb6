/** Status codes by which a provider says that it takes no requests for now. */
const LIMITED = [429, 529]
const FIRST_WAIT_MS = 60_000
const LONGEST_WAIT_MS = 15 * 60_000

export const isLimit = (status: number | undefined): boolean => status !== undefined && LIMITED.includes(status)

/** When to try again. A program that is not told when its limit ends asks again later and later. */
export interface LimitClock {
  /** Epoch milliseconds: the end that was announced, else a guess. */
  retryAt(announcedMs: number | undefined): number
  /** The provider took a request. */
  reset(): void
}

export function createLimitClock(now: () => number = Date.now): LimitClock {
  let waitMs = FIRST_WAIT_MS
  return {
    retryAt(announcedMs) {
      if (announcedMs !== undefined && announcedMs > now()) return announcedMs
      const at = now() + waitMs
      waitMs = Math.min(LONGEST_WAIT_MS, waitMs * 2)
      return at
    },
    reset() {
      waitMs = FIRST_WAIT_MS
    },
  }
}
