/** Work that goes on by itself, remembered until it is over. */
export interface Pending {
  readonly add: <T>(work: Promise<T>) => Promise<T>
  /** Resolves when all that was added until then is over; never rejects. */
  readonly settled: () => Promise<void>
}

export function createPending(): Pending {
  const all = new Set<Promise<unknown>>()
  return {
    add(work) {
      const over = work.finally(() => all.delete(over))
      all.add(over)
      return over
    },
    async settled() {
      await Promise.allSettled(all)
    },
  }
}
