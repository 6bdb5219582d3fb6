import type { Clock } from '../core/clock.ts'
import { HOUR_MS } from '../core/duration.ts'

interface TurnDeps {
  readonly clock: Clock
  readonly turnsPerHour: (instance: string) => number
  /** Asks for waiting messages of an instance again. */
  readonly poke: (instance: string) => void
  readonly onStarted: (run: string) => void
}

/** How many turns an instance may begin: pause, drain, turns per hour. The host's alone, so no runner can pass them by. */
export interface Turns extends AsyncDisposable {
  /** How many messages it may be given now; each is a turn. */
  room(instance: string, run: string): number
  delivered(instance: string, run: string, messages: number): void
  pause(instance: string): void
  resume(instance: string): void
  isPaused(instance: string): boolean
  /** When an instance over its hour may begin its next turn, epoch ms; null when it may now. */
  waitingUntil(run: string): number | null
  drain(): void
  forget(run: string): void
}

interface Recent {
  readonly times: number[]
  retry: NodeJS.Timeout | undefined
  untilMs: number | null
}

export function createTurns({ clock, turnsPerHour, poke, onStarted }: TurnDeps): Turns {
  const paused = new Set<string>()
  const runs = new Map<string, Recent>()
  let draining = false

  const recentOf = (run: string): Recent => {
    const recent = runs.get(run) ?? { times: [], retry: undefined, untilMs: null }
    runs.set(run, recent)
    const horizon = clock.monotonic() - HOUR_MS
    while ((recent.times[0] ?? Number.POSITIVE_INFINITY) <= horizon) recent.times.shift()
    return recent
  }
  /** The hour is full: waiting messages are asked for again when its first turn is an hour old. */
  const retryLater = (instance: string, recent: Recent): void => {
    const waitMs = Math.max(1, (recent.times[0] ?? 0) + HOUR_MS - clock.monotonic())
    recent.untilMs = clock.now() + waitMs
    recent.retry ??= setTimeout(() => {
      recent.retry = undefined
      recent.untilMs = null
      poke(instance)
    }, waitMs).unref()
  }
  const forget = (run: string): void => {
    clearTimeout(runs.get(run)?.retry)
    runs.delete(run)
  }
  return {
    room(instance, run) {
      if (draining || paused.has(instance)) return 0
      const recent = recentOf(run)
      const left = Math.max(0, turnsPerHour(instance) - recent.times.length)
      if (left === 0) retryLater(instance, recent)
      return left
    },
    delivered(_instance, run, messages) {
      const { times } = recentOf(run)
      for (let n = 0; n < messages; n++) times.push(clock.monotonic())
      onStarted(run)
    },
    pause: (instance) => void paused.add(instance),
    resume(instance) {
      paused.delete(instance)
      poke(instance)
    },
    isPaused: (instance) => paused.has(instance),
    waitingUntil: (run) => runs.get(run)?.untilMs ?? null,
    drain: () => {
      draining = true
    },
    forget,
    [Symbol.asyncDispose]: () => {
      for (const run of [...runs.keys()]) forget(run)
      return Promise.resolve()
    },
  }
}
