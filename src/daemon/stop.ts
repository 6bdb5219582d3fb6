import type { Host } from './host.ts'
import type { OpenSockets } from './sockets.ts'

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
  if (isIdle()) return
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

/**
 * The orderly stop: after the drain `onDrained` is told how long sessions may take; no new requests, launches in progress undone, sessions ended in parallel, then the bus closed. The store
 * is closed by the caller, last.
 */
export async function stopHost(
  host: Host,
  sockets: OpenSockets,
  { drainMs, timeoutMs = TIMEOUT_MS }: StopOptions,
  onDrained: (timeoutMs: number) => void,
): Promise<void> {
  const { live, stopping, hurry, deps, launching } = host
  const { failpoint } = launching
  if (drainMs !== undefined) await drain(host, drainMs)
  onDrained(timeoutMs)
  failpoint('host.doors')
  stopping.abort()
  await sockets.closeDoors()
  await host.launchesSettled()
  const stopAll = (ms: number): Promise<unknown> => Promise.allSettled(live.runs().map((run) => live.stop(run, ms)))
  const killAll = (): void => {
    for (const run of live.runs()) live.stop(run, 0).catch((error: unknown) => deps.log.warn({ err: error, run }, 'hurried stop failed'))
  }
  if (hurry.signal.aborted) killAll()
  hurry.signal.addEventListener('abort', killAll)
  failpoint('host.sessions')
  await stopAll(timeoutMs)
  failpoint('host.sockets')
  await sockets[Symbol.asyncDispose]()
}
