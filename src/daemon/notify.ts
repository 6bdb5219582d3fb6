import { sendDatagram } from '../core/kernel.ts'
import type { Log } from '../core/log.ts'

/** systemd's word, where it listens; otherwise nothing. sd_notify(3). What cannot be said is logged: it is no reason to end. */
export interface Notifier extends AsyncDisposable {
  ready(status: string): void
  status(text: string): void
  reloading(): void
  /** `timeoutMs`: how long sessions may take; the manager waits for that, and then some, before it kills. */
  stopping(timeoutMs: number): void
}

/** To undo launches, and to close bus and store, beside the time of the sessions. */
const CLOSING_MS = 60_000

/** Logs the first failure of a row of them. */
function createSender(path: string, log: Log): (...lines: string[]) => void {
  let failing = false
  return (...lines) => {
    try {
      sendDatagram(path, lines.join('\n'))
      failing = false
    } catch (error) {
      if (!failing) log.warn({ err: error, lines }, 'systemd could not be told')
      failing = true
    }
  }
}

export function openNotifier(env: NodeJS.ProcessEnv, log: Log): Notifier {
  const socket = env.NOTIFY_SOCKET ?? ''
  const send = socket === '' ? () => undefined : createSender(socket, log)
  const watchdogUs = Number(env.WATCHDOG_USEC ?? 0)
  const watchdog = socket !== '' && watchdogUs > 0 ? setInterval(() => send('WATCHDOG=1'), watchdogUs / 2000) : undefined
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

interface Changing {
  readonly onChange: (listener: () => void) => () => void
}

const STATUS_MS = 500

/** Says the status when it has changed, at most twice a second; `toStatus` gives null where there is none to say. Returns the end of it. */
export function keepStatus({ onChange }: Changing, notifier: Pick<Notifier, 'status'>, toStatus: () => string | null): () => void {
  let said = toStatus()
  let timer: NodeJS.Timeout | undefined
  const look = (): void => {
    timer = undefined
    const status = toStatus()
    if (status !== null && status !== said) notifier.status(status)
    said = status
  }
  const end = onChange(() => (timer ??= setTimeout(look, STATUS_MS).unref()))
  return () => {
    end()
    clearTimeout(timer)
  }
}
