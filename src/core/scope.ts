type Closer = () => unknown

/** Collects what must be closed and closes it in reverse; Node 20 has no AsyncDisposableStack. */
export interface Scope extends AsyncDisposable {
  /** Registers a closer; returns its subject, so that opening and registering are one expression. */
  use<T extends AsyncDisposable>(opened: T): T
  defer(closer: Closer): void
  /** Closes all, last first; reports every error in one AggregateError. Idempotent. */
  close(): Promise<void>
}

export function createScope(): Scope {
  const closers: Closer[] = []
  const close = async (): Promise<void> => {
    const errors: unknown[] = []
    for (let closer = closers.pop(); closer !== undefined; closer = closers.pop()) {
      try {
        await closer()
      } catch (error) {
        errors.push(error)
      }
    }
    if (errors.length > 0) throw new AggregateError(errors, 'closing failed')
  }
  return {
    use(opened) {
      closers.push(() => opened[Symbol.asyncDispose]())
      return opened
    },
    defer: (closer) => void closers.push(closer),
    close,
    [Symbol.asyncDispose]: close,
  }
}
