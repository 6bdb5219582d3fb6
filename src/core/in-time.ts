interface TimeBounds {
  readonly timeoutMs: number
  readonly signal?: AbortSignal | undefined
}

/** Waits for work that cannot be ended from outside. Rejects with `late()` at the deadline, with the signal's reason when that aborts; the work goes on. */
export async function inTime<T>(work: Promise<T>, { timeoutMs, signal }: TimeBounds, late: () => Error): Promise<T> {
  const over = new AbortController()
  const ended = new Promise<never>((_, reject) => {
    const timer = setTimeout(() => reject(late()), timeoutMs)
    const abort = (): void => reject(signal?.reason as Error)
    if (signal?.aborted === true) abort()
    signal?.addEventListener('abort', abort, { signal: over.signal })
    over.signal.addEventListener('abort', () => clearTimeout(timer))
  })
  return Promise.race([work, ended]).finally(() => over.abort())
}
