import type { SessionWord } from '../protocol/bus.ts'
import { classifyEnd, type EndIntent, type SandboxExit } from './end.ts'
import type { LaunchDeps, StartedRun } from './ports.ts'
import { recordEnd } from './record-end.ts'
import { createRunTimers, type RunTimers } from './timers.ts'
import { createWords, type Words } from './words.ts'

/** How long a runner that was told to end may take before its sandbox is killed. */
const END_GRACE_MS = 10_000

export type LiveDeps = Pick<LaunchDeps, 'store' | 'broker' | 'capabilities' | 'clock' | 'log' | 'failpoint'> & {
  /** The end is recorded and the env root free. */
  readonly onEnded: (run: string) => void
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
  /** Resolves when everything of it is gone and recorded. */
  readonly ended: Promise<void>
  readonly #deps: LiveDeps
  readonly #words: Words = createWords()
  #intent: EndIntent | null = null

  constructor(deps: LiveDeps, started: StartedRun) {
    this.#deps = deps
    this.started = started
    this.timers = createRunTimers(started.limits, (reason) => {
      this.#overTime(reason)
    })
    this.ended = started.sandbox.ended.then((exit) => {
      this.#finish(exit)
    })
  }

  say(word: SessionWord): void {
    this.#words.say(word)
  }

  waitWord(waitMs: number, signal: AbortSignal): Promise<SessionWord> {
    return this.#words.wait(waitMs, signal)
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
    const { store, failpoint } = this.#deps
    failpoint('stop.row')
    store.writeNow(() => store.sessions.setStopping(this.started.run))
  }

  #overTime(reason: 'turn-timeout' | 'idle-timeout' | 'run-timeout'): void {
    if (this.#intent !== null) return
    this.#intent = { reason, forced: false }
    this.#setStopping()
    this.say({ end: reason })
    this.#endWithin(END_GRACE_MS).catch((error: unknown) => {
      this.#deps.log.error({ err: error, run: this.started.run }, 'ending a run failed')
    })
  }

  /** Waits for an end that was asked for, then makes it one. */
  async #endWithin(ms: number): Promise<void> {
    if (!(await within(this.started.sandbox.ended, ms))) {
      this.#intent = { reason: this.#intent?.reason ?? 'stopped', forced: true }
      await this.#kill()
    }
    await this.ended
  }

  #finish(exit: SandboxExit): void {
    const { started } = this
    const { clock, log, failpoint, onEnded } = this.#deps
    this.timers.close()
    this.#words.wake()
    try {
      recordEnd(this.#deps, started, classifyEnd(this.#intent, exit), clock.monotonic() - started.startedMs)
    } catch (error) {
      // the row stays, and the next host ends it: the env root must be free all the same
      log.error({ err: error, run: started.run }, 'recording an end failed')
    }
    started.directory.close()
    failpoint('end.release')
    started.claim.close()
    failpoint('end.released')
    onEnded(started.run)
  }
}
