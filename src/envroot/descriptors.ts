/** Descriptors to close together, last first; synchronous, so that a lock is free when `close` returns. Idempotent. */
export interface Descriptors {
  readonly add: (close: () => void) => void
  readonly close: () => void
}

export function createDescriptors(): Descriptors {
  const closers: (() => void)[] = []
  return {
    add: (close) => void closers.push(close),
    close: () => {
      for (let close = closers.pop(); close !== undefined; close = closers.pop()) close()
    },
  }
}
