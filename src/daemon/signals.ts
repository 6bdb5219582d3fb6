export interface SignalHandlers {
  /** The second one hurries. */
  readonly stop: () => void
  readonly reload: () => void
}

/** The signals of a bus host, caught from its first moment on: what comes before there is a host to tell waits for it. */
export interface Signals extends AsyncDisposable {
  /** Tells what came so far, in order, and from now on all. */
  handTo(handlers: SignalHandlers): void
}

const STOPPING = ['SIGTERM', 'SIGINT'] as const

/** SIGTERM and SIGINT stop in order, SIGHUP reloads. */
export function catchSignals(): Signals {
  let told: SignalHandlers | null = null
  const early: (keyof SignalHandlers)[] = []
  const close = (): void => {
    for (const signal of STOPPING) process.off(signal, stop)
    process.off('SIGHUP', hup)
  }
  const stop = (signal: NodeJS.Signals): void => {
    if (told !== null) told.stop()
    else if (early.includes('stop')) {
      // whoever asks twice does not want to wait until a start that hangs has got anywhere: that is a crash, which the next start mends
      close()
      process.kill(process.pid, signal)
    } else early.push('stop')
  }
  const hup = (): void => {
    if (told === null) early.push('reload')
    else told.reload()
  }
  for (const signal of STOPPING) process.on(signal, stop)
  process.on('SIGHUP', hup)
  return {
    handTo(handlers) {
      told = handlers
      for (const what of early.splice(0)) handlers[what]()
    },
    [Symbol.asyncDispose]: () => {
      close()
      return Promise.resolve()
    },
  }
}
