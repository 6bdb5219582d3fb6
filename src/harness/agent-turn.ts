import type { TurnEnded } from './contract.ts'
import type { Dialect, Emit } from './dialect.ts'

/** A silent program that does not even end its turn when interrupted is ended. */
const INTERRUPT_MS = 10_000

/** Calls back when nothing has touched it for `ms`. */
function createWatchdog(ms: number, onSilence: () => void): { touch(): void; stop(): void } {
  let timer: NodeJS.Timeout | undefined
  const stop = (): void => clearTimeout(timer)
  return {
    touch() {
      stop()
      timer = setTimeout(onSilence, ms)
      timer.unref()
    },
    stop,
  }
}

interface TurnDeps {
  readonly push: Emit
  readonly write: (frame: object) => void
  readonly kill: () => void
  readonly dialect: Dialect
  readonly silenceMs: number
}

/** The turn of an agent program: begun by us, ended by the program, by an interrupt, or with the program. */
export interface Turns {
  readonly isOn: () => boolean
  /** The program said something. */
  readonly heard: () => void
  readonly begin: (text: string) => void
  /** Interrupts it; it ends as failed, for this reason. */
  readonly cut: (reason: string) => void
  readonly end: (ended: TurnEnded) => void
  /** Resolves when no turn is on. */
  readonly idle: () => Promise<void>
}

interface Turn {
  /** Why it is ended before its end. */
  cut: string | null
  readonly over: () => void
}

export function createTurns({ push, write, kill, dialect, silenceMs }: TurnDeps): Turns {
  let turn: Turn | undefined
  let idle = Promise.resolve()
  const cut = (reason: string): void => {
    if (turn === undefined) return
    turn.cut ??= reason
    write(dialect.toInterrupt())
  }
  const deaf = createWatchdog(INTERRUPT_MS, kill)
  const silent = createWatchdog(silenceMs, () => {
    deaf.touch()
    cut(`the program said nothing for ${String(Math.round(silenceMs / 1000))} s`)
  })
  return {
    isOn: () => turn !== undefined,
    heard() {
      if (turn !== undefined) silent.touch()
    },
    begin(text) {
      idle = new Promise((over) => {
        turn = { cut: null, over }
      })
      push({ event: 'turn-started' })
      silent.touch()
      write(dialect.toPrompt(text))
    },
    cut,
    end(ended) {
      if (turn === undefined) return
      const { cut: reason, over } = turn
      turn = undefined
      silent.stop()
      deaf.stop()
      push(reason === null ? ended : { event: 'turn-ended', ok: false, reason })
      over()
    },
    idle: () => idle,
  }
}
