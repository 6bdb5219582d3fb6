/** Descriptors to close together, last first; synchronous, so that a lock is free when `close` returns. Idempotent. */
export interface Descriptors {
  readonly add: (close: () => void) => void
  /** Closes all of them, also when one fails, then throws the first failure. */
  readonly close: () => void
}

export function createDescriptors(): Descriptors {
  const closers: (() => void)[] = []
  return {
    add: (close) => void closers.push(close),
    close: () => {
      const failures: unknown[] = []
      for (let close = closers.pop(); close !== undefined; close = closers.pop()) {
        try {
          close()
        } catch (error) {
          failures.push(error)
        }
      }
      if (failures.length > 0) throw failures[0]
    },
  }
}
