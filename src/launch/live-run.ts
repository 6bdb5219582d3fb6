import type { SessionWord } from '../protocol/bus.ts'
import { classifyEnd, type EndIntent, type SandboxExit } from './end.ts'
import type { LateEnds } from './late-ends.ts'
import type { LaunchDeps, StartedRun } from './ports.ts'
import { recordEnd } from './record-end.ts'
import { createRunTimers, type RunTimers } from './timers.ts'
import { createHostWord, type HostWord } from './host-word.ts'

/** How long a runner that was told to end may take before its sandbox is killed. */
const END_GRACE_MS = 10_000

export type LiveDeps = Pick<LaunchDeps, 'store' | 'broker' | 'capabilities' | 'clock' | 'log' | 'failpoint'> & {
  /** How long the provider still limits this run's family, in ms; null: it does not. */
  readonly limitedMs: (run: string) => number | null
  /** Nothing of it lives, and the env root is free; its end is recorded, or handed to `lateEnds`. */
  readonly onEnded: (run: string) => void
  readonly lateEnds: LateEnds
}

/** Resolves with true when `done` came first, with false after `ms`. */
async function within(done: Promise<unknown>, ms: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<false>((resolve) => {
    timer = setTimeout(resolve, ms, false)
  })
  const first = await Promise.race([done.then(() => true), late])
  clearTimeout(timer)
  return first
}

/** One session, from its commit until its end is recorded and its lock is free. Whoever ends it first says why. */
export class LiveRun {
  readonly started: StartedRun
  readonly timers: RunTimers
  /** Never rejects. Resolves when everything of it is gone and, unless the disk is full, recorded. */
  readonly ended: Promise<void>
  readonly #deps: LiveDeps
  readonly #word: HostWord = createHostWord()
  #intent: EndIntent | null = null

  constructor(deps: LiveDeps, started: StartedRun) {
    this.#deps = deps
    this.started = started
    this.timers = createRunTimers(started.limits, (reason) => this.#overTime(reason))
    this.ended = started.sandbox.ended.then((exit) => {
      this.#finish(exit)
    })
  }

  say(word: SessionWord): void {
    this.#word.say(word)
  }

  waitWord(waitMs: number, signal: AbortSignal): Promise<SessionWord> {
    return this.#word.wait(waitMs, signal)
  }

  /** SIGTERM, then SIGKILL of the whole sandbox after `timeoutMs`; resolves when everything of it is gone. */
  async stop(timeoutMs: number, reason: 'stopped' | 'disk-limit' = 'stopped'): Promise<void> {
    this.#intent ??= { reason, forced: false }
    this.#setStopping()
    this.#deps.failpoint('stop.signal')
    this.started.sandbox.signalRunner('SIGTERM')
    this.#deps.failpoint('stop.wait')
    await this.#endWithin(timeoutMs)
  }

  /** The host could not give it what it needs; nobody waits for this end. */
  fail(): void {
    this.#intent ??= { reason: 'failed', forced: true }
    this.#endWithin(0).catch((error: unknown) => {
      this.#deps.log.error({ err: error, run: this.started.run }, 'ending a run failed')
    })
  }

  async kill(): Promise<void> {
    this.#intent = { reason: 'killed', forced: true }
    await this.#kill()
    await this.ended
  }

  async #kill(): Promise<void> {
    this.#deps.failpoint('stop.kill')
    await this.started.sandbox.kill()
  }

  #setStopping(): void {
    const { store, failpoint, log } = this.#deps
    failpoint('stop.row')
    try {
      store.writeNow(() => store.sessions.setStopping(this.started.run))
    } catch (error) {
      // a full disk keeps nobody from being ended
      log.warn({ err: error, run: this.started.run }, 'the row does not say that the run is stopping')
    }
  }

  /** Null: the run is being ended. A turn that waits for its provider is no turn that takes too long: it goes on until then. */
  #overTime(reason: 'turn-timeout' | 'idle-timeout' | 'run-timeout'): number | null {
    if (this.#intent !== null) return null
    const waitMs = reason === 'turn-timeout' ? this.#deps.limitedMs(this.started.run) : null
    if (waitMs !== null) return waitMs + this.started.limits.turnTimeoutMs
    this.#intent = { reason, forced: false }
    this.#setStopping()
    this.say({ end: reason })
    this.#endWithin(END_GRACE_MS).catch((error: unknown) => {
      this.#deps.log.error({ err: error, run: this.started.run }, 'ending a run failed')
    })
    return null
  }

  /** Waits for an end that was asked for, then makes it one. */
  async #endWithin(ms: number): Promise<void> {
    if (!(await within(this.started.sandbox.ended, ms))) {
      this.#intent = { reason: this.#intent?.reason ?? 'stopped', forced: true }
      await this.#kill()
    }
    await this.ended
  }

  /** One of the last steps: what fails in it keeps none of the others from being taken. */
  #try(what: string, step: () => void): void {
    try {
      step()
    } catch (error) {
      this.#deps.log.error({ err: error, run: this.started.run, what }, 'a step of an end failed')
    }
  }

  #record(exit: SandboxExit): void {
    const { started } = this
    const { clock, log, lateEnds } = this.#deps
    const durationMs = clock.monotonic() - started.startedMs
    const end = classifyEnd(this.#intent, exit)
    const record = (): void => recordEnd(this.#deps, started, end, durationMs)
    try {
      record()
    } catch (error) {
      // nothing of it lives, so that the env root is free all the same; only its instance waits until the end is written
      log.error({ err: error, run: started.run }, 'recording an end failed, will be tried again')
      lateEnds.keepTrying(started.run, record)
    }
  }

  #finish(exit: SandboxExit): void {
    const { started } = this
    const { failpoint, onEnded } = this.#deps
    this.timers.close()
    this.#word.wake()
    this.#try('record', () => this.#record(exit))
    this.#try('close the directory', () => started.directory.close())
    failpoint('end.release')
    this.#try('let the env root go', () => started.claim.close())
    failpoint('end.released')
    this.#try('forget it', () => onEnded(started.run))
  }
}
