/** Aborts with the first of several signals, until it is disposed. */
export interface AnySignal extends Disposable {
  readonly signal: AbortSignal
}

/** AbortSignal.any, which on Node 20 leaves an entry in a signal that lives on for each one made of it. */
export function anySignal(signals: readonly AbortSignal[]): AnySignal {
  const [either, over] = [new AbortController(), new AbortController()]
  for (const signal of signals) {
    const abort = (): void => either.abort(signal.reason)
    if (signal.aborted) abort()
    else signal.addEventListener('abort', abort, { signal: over.signal })
  }
  return { signal: either.signal, [Symbol.dispose]: () => over.abort() }
}
