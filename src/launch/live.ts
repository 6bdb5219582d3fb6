import { AppError } from '../core/errors.ts'
import type { SessionWord } from '../protocol/bus.ts'
import { type LiveDeps, LiveRun } from './live-run.ts'
import { createLateEnds, type LateEnds } from './late-ends.ts'
import type { StartedRun } from './ports.ts'

/** The sessions of this host. */
export interface LiveRuns {
  readonly adopt: (started: StartedRun) => void
  readonly runs: () => readonly string[]
  readonly has: (run: string) => boolean
  /** Throws `not-running`. */
  readonly stop: (run: string, timeoutMs: number, reason?: 'stopped' | 'disk-limit') => Promise<void>
  /** Ends a run that the host could not give what it needs. */
  readonly fail: (run: string) => void
  /** Throws `not-running`. */
  readonly kill: (run: string) => Promise<void>
  /** Resolves when the run has ended; at once when it does not live. */
  readonly ended: (run: string) => Promise<void>
  /** The host's word to a runner: at once when there is one, `{}` when none came within `waitMs`. Throws `not-running`. */
  readonly waitWord: (run: string, waitMs: number, signal: AbortSignal) => Promise<SessionWord>
  readonly say: (run: string, word: SessionWord) => void
  readonly turnStarted: (run: string) => void
  readonly turnEnded: (run: string) => void
  /** The pid 1 of a live run, to check who a peer is. */
  readonly initOf: (run: string) => number | null
  readonly appendTranscript: (run: string, lines: string) => void
  /** Takes an end that could not be written down. */
  readonly keepTrying: LateEnds['keepTrying']
  /** Writes down what ends it still can. */
  readonly close: () => void
}

export function createLiveRuns(deps: Omit<LiveDeps, 'lateEnds'>): LiveRuns {
  const lateEnds = createLateEnds(deps)
  const live = new Map<string, LiveRun>()
  const find = (run: string): LiveRun => {
    const found = live.get(run)
    if (found === undefined) throw new AppError('not-running', `run ${run} does not run`, { hint: 'mosaic ps' })
    return found
  }
  const onEnded = (run: string): void => {
    live.delete(run)
    deps.onEnded(run)
  }
  return {
    adopt: (started) => void live.set(started.run, new LiveRun({ ...deps, onEnded, lateEnds }, started)),
    runs: () => [...live.keys()],
    has: (run) => live.has(run),
    stop: async (run, timeoutMs, reason) => find(run).stop(timeoutMs, reason),
    fail: (run) => live.get(run)?.fail(),
    kill: async (run) => find(run).kill(),
    ended: async (run) => live.get(run)?.ended,
    waitWord: async (run, waitMs, signal) => find(run).waitWord(waitMs, signal),
    say: (run, word) => live.get(run)?.say(word),
    turnStarted: (run) => live.get(run)?.timers.turnStarted(),
    turnEnded: (run) => live.get(run)?.timers.turnEnded(),
    initOf: (run) => live.get(run)?.started.sandbox.init.pid ?? null,
    appendTranscript: (run, lines) => live.get(run)?.started.directory.appendTranscript(lines),
    keepTrying: lateEnds.keepTrying,
    close: () => lateEnds.close(),
  }
}
