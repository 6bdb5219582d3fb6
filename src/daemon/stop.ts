import type { Host } from './host.ts'
import type { OpenSockets } from './sockets.ts'
import { unlessHurried } from './stop-signals.ts'

export interface StopOptions {
  /** No new turns; running ones may end within this time. */
  readonly drainMs?: number | undefined
  /** How long each session may take before it is killed. */
  readonly timeoutMs?: number | undefined
}

const TIMEOUT_MS = 10_000

/** Running turns end, or their time does. A turn runs while its message is not settled. */
async function drain({ store, live, turns, hurry }: Host, drainMs: number): Promise<void> {
  turns.drain()
  const isIdle = (): boolean => live.runs().every((run) => store.messages.givenTo(run).length === 0)
  if (isIdle() || hurry.signal.aborted) return
  await new Promise<void>((resolve) => {
    const finish = (): void => {
      clearTimeout(timer)
      stopWatching()
      resolve()
    }
    const timer = setTimeout(finish, drainMs)
    const stopWatching = store.onChange(() => {
      if (isIdle()) finish()
    })
    hurry.signal.addEventListener('abort', finish, { once: true })
  })
}

/** All sessions at once, each within that time; those that are left when the stop is hurried are killed. */
async function stopSessions({ live, hurry, deps }: Host, timeoutMs: number): Promise<void> {
  const stopAll = (ms: number): Promise<unknown> =>
    Promise.all(live.runs().map((run) => live.stop(run, ms).catch((error: unknown) => deps.log.warn({ err: error, run }, 'stopping a session failed'))))
  hurry.signal.addEventListener('abort', () => void stopAll(0))
  await stopAll(hurry.signal.aborted ? 0 : timeoutMs)
}

/**
 * The orderly stop: after the drain `onDrained` is told how long sessions may take; no new requests, launches in progress undone, sessions
 * ended in parallel, pushes that were being written down waited for, then the bus closed. The store is closed by the caller, last.
 */
export async function stopHost(
  host: Host,
  sockets: OpenSockets,
  { drainMs, timeoutMs = TIMEOUT_MS }: StopOptions,
  onDrained: (timeoutMs: number) => void,
): Promise<void> {
  const { failpoint } = host.launching
  host.closing.abort()
  if (drainMs !== undefined) await drain(host, drainMs)
  onDrained(timeoutMs)
  failpoint('host.doors')
  host.stopping.abort()
  await sockets.closeDoors()
  await unlessHurried(host, host.launchesSettled())
  failpoint('host.sessions')
  await stopSessions(host, timeoutMs)
  await unlessHurried(host, host.git.settled())
  failpoint('host.sockets')
  await sockets[Symbol.asyncDispose]()
}
