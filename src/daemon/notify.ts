import { sendDatagram } from '../core/kernel.ts'

/** systemd's word, where it listens; otherwise nothing. sd_notify(3) */
export interface Notifier extends AsyncDisposable {
  ready(status: string): void
  status(text: string): void
  reloading(): void
  /** `timeoutMs`: how long sessions may take; the manager waits for that, and then some, before it kills. */
  stopping(timeoutMs: number): void
}

/** To undo launches, and to close bus and store, beside the time of the sessions. */
const CLOSING_MS = 60_000

export function openNotifier(env: NodeJS.ProcessEnv): Notifier {
  const socket = env.NOTIFY_SOCKET
  const send = (...lines: string[]): void => {
    if (socket !== undefined && socket !== '') sendDatagram(socket, lines.join('\n'))
  }
  const watchdogUs = Number(env.WATCHDOG_USEC ?? 0)
  const watchdog = socket !== undefined && watchdogUs > 0 ? setInterval(() => send('WATCHDOG=1'), watchdogUs / 2000) : undefined
  watchdog?.unref()
  return {
    ready: (status) => send('READY=1', `STATUS=${status}`),
    status: (text) => send(`STATUS=${text}`),
    reloading: () => send('RELOADING=1', `MONOTONIC_USEC=${String(process.hrtime.bigint() / 1000n)}`),
    stopping: (timeoutMs) => send('STOPPING=1', `EXTEND_TIMEOUT_USEC=${String((timeoutMs + CLOSING_MS) * 1000)}`),
    [Symbol.asyncDispose]: () => {
      clearInterval(watchdog)
      return Promise.resolve()
    },
  }
}
