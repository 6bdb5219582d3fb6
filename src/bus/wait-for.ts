import type { BrokerStore } from './ports.ts'

export interface WaitOptions {
  readonly waitMs?: number | undefined
  readonly signal?: AbortSignal | undefined
}

/** The first answer that is not null: now, or after a change of the store; null once waitMs are over or the signal aborts. */
export function waitFor<T>(store: Pick<BrokerStore, 'onChange'>, look: () => T | null, { waitMs = 0, signal }: WaitOptions = {}): Promise<T | null> {
  const now = look()
  if (now !== null || waitMs === 0 || signal?.aborted === true) return Promise.resolve(now)
  return new Promise((resolve, reject) => {
    const finish = (settle: () => void): void => {
      clearTimeout(timer)
      stopWatching()
      signal?.removeEventListener('abort', onAbort)
      settle()
    }
    const onAbort = (): void => finish(() => resolve(null))
    const timer = setTimeout(onAbort, waitMs)
    const stopWatching = store.onChange(() => {
      try {
        const found = look()
        if (found !== null) finish(() => resolve(found))
      } catch (error) {
        finish(() => reject(error instanceof Error ? error : new Error(String(error))))
      }
    })
    signal?.addEventListener('abort', onAbort, { once: true })
  })
}
