import { AppError } from '../core/errors.ts'
import type { SessionWord } from '../protocol/bus.ts'
import { classifyEnd, type EndIntent } from './end.ts'
import type { LaunchDeps, StartedRun } from './ports.ts'
import { recordEnd } from './record-end.ts'
import { createRunTimers, type RunTimers } from './timers.ts'

/** How long a runner that was told to end may take before its sandbox is killed. */
const END_GRACE_MS = 10_000

type LiveDeps = Pick<LaunchDeps, 'store' | 'broker' | 'capabilities' | 'clock' | 'log' | 'failpoint'> & {
  readonly onEnded: (run: string) => void
}

interface LiveRun {
  readonly started: StartedRun
  readonly timers: RunTimers
  /** Set by the first who ends it. */
  intent: { reason: EndIntent['reason']; forced: boolean } | null
  word: SessionWord
  wake: () => void
  woken: Promise<void>
  readonly ended: Promise<void>
}

/** The sessions of this host: from their commit until their end is recorded and their lock is free. */
export interface LiveRuns {
  adopt(started: StartedRun): void
  runs(): readonly string[]
  has(run: string): boolean
  /** SIGTERM, then SIGKILL of the whole sandbox after `timeoutMs`; resolves when everything of it is gone. */
  stop(run: string, timeoutMs: number): Promise<void>
  kill(run: string): Promise<void>
  /** Resolves when the run has ended; at once when it does not live. */
  ended(run: string): Promise<void>
  /** The host's word to a runner: at once when there is one, `{}` when none came within `waitMs`. */
  waitWord(run: string, waitMs: number, signal: AbortSignal): Promise<SessionWord>
  say(run: string, word: SessionWord): void
  turnStarted(run: string): void
  turnEnded(run: string): void
  /** The pid 1 of a live run, to check who a peer is. */
  initOf(run: string): number | null
  appendTranscript(run: string, line: string): void
}

export function createLiveRuns(deps: LiveDeps): LiveRuns {
  const live = new Map<string, LiveRun>()

  const renew = (entry: LiveRun): void => {
    entry.woken = new Promise((resolve) => {
      entry.wake = resolve
    })
  }
  const say = (run: string, word: SessionWord): void => {
    const entry = live.get(run)
    if (entry === undefined) return
    entry.word = { ...entry.word, ...word }
    entry.wake()
  }
  const force = async (entry: LiveRun, reason: EndIntent['reason']): Promise<void> => {
    entry.intent = { reason: entry.intent?.reason ?? reason, forced: true }
    await entry.started.sandbox.kill()
    await entry.ended
  }
  /** Waits for an end that was asked for, then makes it one. */
  const endWithin = async (entry: LiveRun, reason: EndIntent['reason'], ms: number): Promise<void> => {
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<'late'>((resolve) => {
      timer = setTimeout(resolve, ms, 'late')
    })
    const how = await Promise.race([entry.started.sandbox.ended, late])
    clearTimeout(timer)
    if (how === 'late') await force(entry, reason)
    else await entry.ended
  }
  const overTime =
    (run: string) =>
    (reason: 'turn-timeout' | 'idle-timeout' | 'run-timeout'): void => {
      const entry = live.get(run)
      if (entry === undefined || entry.intent !== null) return
      entry.intent = { reason, forced: false }
      deps.store.writeNow(() => deps.store.sessions.setStopping(run))
      say(run, { end: reason })
      endWithin(entry, reason, END_GRACE_MS).catch((error: unknown) => deps.log.error({ err: error, run }, 'ending a run failed'))
    }
  const finish = async (started: StartedRun): Promise<void> => {
    const { run, sandbox, claim, directory } = started
    const seen = await sandbox.ended
    const entry = live.get(run)
    entry?.timers.close()
    const durationMs = deps.clock.monotonic() - started.startedMs
    try {
      recordEnd(deps, started, classifyEnd(entry?.intent ?? null, seen), durationMs)
    } catch (error) {
      // the row stays, and the next host ends it: nothing else may be lost over it
      deps.log.error({ err: error, run }, 'recording an end failed')
    }
    live.delete(run)
    directory.close()
    deps.failpoint('end.release')
    claim.close()
    entry?.wake()
    deps.onEnded(run)
  }
  const entryOf = (run: string): LiveRun => {
    const entry = live.get(run)
    if (entry === undefined) throw new AppError('not-running', `run ${run} does not run`)
    return entry
  }

  return {
    adopt(started) {
      const timers = createRunTimers(started.limits, overTime(started.run))
      const entry: LiveRun = { started, timers, intent: null, word: {}, wake: () => undefined, woken: Promise.resolve(), ended: finish(started) }
      renew(entry)
      live.set(started.run, entry)
    },
    runs: () => [...live.keys()],
    has: (run) => live.has(run),
    async stop(run, timeoutMs) {
      const entry = entryOf(run)
      entry.intent ??= { reason: 'stopped', forced: false }
      deps.failpoint('stop.row')
      deps.store.writeNow(() => deps.store.sessions.setStopping(run))
      deps.failpoint('stop.signal')
      entry.started.sandbox.signalRunner('SIGTERM')
      await endWithin(entry, 'stopped', timeoutMs)
    },
    kill: (run) => {
      const entry = entryOf(run)
      entry.intent = { reason: 'killed', forced: true }
      return force(entry, 'killed')
    },
    ended: async (run) => live.get(run)?.ended,
    async waitWord(run, waitMs, signal) {
      const entry = entryOf(run)
      if (Object.keys(entry.word).length === 0) {
        await Promise.race([entry.woken, delay(waitMs, signal)])
        renew(entry)
      }
      // a word is taken by a peer that is still there
      if (signal.aborted) return {}
      const { word } = entry
      entry.word = {}
      return word
    },
    say,
    turnStarted: (run) => live.get(run)?.timers.turnStarted(),
    turnEnded: (run) => live.get(run)?.timers.turnEnded(),
    initOf: (run) => live.get(run)?.started.sandbox.init.pid ?? null,
    appendTranscript: (run, line) => live.get(run)?.started.directory.appendTranscript(line),
  }
}

const delay = (ms: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, ms)
    signal.addEventListener('abort', () => {
      clearTimeout(timer)
      resolve()
    })
  })
