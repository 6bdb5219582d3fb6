/** So many of a thing that all runs share: bytes of memory, places for connections. */
export interface Pool {
  /** false: there are not so many left. */
  take(count: number): boolean
  give(count: number): void
}

export function createPool(total: number): Pool {
  let left = total
  return {
    take(count) {
      if (count > left) return false
      left -= count
      return true
    },
    give(count) {
      left += count
    },
  }
}
