/** Wall-clock and monotonic time; tests pass their own. */
export interface Clock {
  /** Milliseconds since the epoch, for what people read. */
  readonly now: () => number
  /** Milliseconds from an arbitrary start that never jumps, for durations and deadlines. */
  readonly monotonic: () => number
}

export const systemClock: Clock = { now: () => Date.now(), monotonic: () => performance.now() }

/** RFC 3339 UTC with milliseconds, the one form of a time in rows, files and frames. */
export const toTimestamp = (epochMs: number): string => new Date(epochMs).toISOString()
