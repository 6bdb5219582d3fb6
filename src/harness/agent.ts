import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { messageOf } from '../core/errors.ts'
import type { Driver, DriverEvent, DriverOptions, TurnEnded } from './contract.ts'
import { createEventQueue } from './events.ts'
import type { LongLine } from './lines.ts'
import { type ProgramExit, spawnProgram } from './process.ts'

const SILENCE_MS = 15 * 60_000
/** A silent program that does not even end its turn when interrupted is ended. */
const INTERRUPT_MS = 10_000
const LONG_LINES = '.mosaic/long-lines'

export type Frame = Readonly<Record<string, unknown>>
export type Emit = (event: DriverEvent) => void

/** How one agent program speaks: what we write to it, and what its lines mean. */
export interface Dialect {
  readonly toPrompt: (text: string) => object
  readonly toInterrupt: () => object
  /** Gives the events of a line; unknown kinds of lines give none. */
  readonly read: (frame: Frame, emit: Emit) => void
  readonly readLong: (line: LongLine, emit: Emit) => void
  /** Lines that begin so are passed over unread. */
  readonly ignored?: string
}

export interface AgentCommand {
  readonly command: string
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string>>
}

/** A driver, and the program's input for what is no turn. */
export interface Agent extends Driver {
  readonly write: (frame: object) => void
  readonly emit: Emit
  /** Resolves when the program is gone. */
  readonly exited: Promise<ProgramExit>
}

const isFrame = (value: unknown): value is Frame => typeof value === 'object' && value !== null && !Array.isArray(value)

function parseLine(line: string, log: (line: string) => void): Frame | undefined {
  if (line.trim() === '') return undefined
  try {
    const value: unknown = JSON.parse(line)
    if (isFrame(value)) return value
  } catch {
    // said below
  }
  log(`stdout: ${line.slice(0, 500)}`)
  return undefined
}

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
interface Turns {
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

function createTurns({ push, write, kill, dialect, silenceMs }: TurnDeps): Turns {
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

const wordsOf = ({ code, signal }: ProgramExit): string => `the program ended in mid-turn: ${signal ?? `exit ${String(code)}`}`

interface Reader {
  readonly onLine: (line: string) => void
  readonly onLong: (line: LongLine) => void
}

/** Lines to events. A line that is not understood ends nothing. */
function createReader({ dialect, heard, emit, log }: { dialect: Dialect; heard: () => void; emit: Emit; log: (line: string) => void }): Reader {
  const guarded = (read: () => void): void => {
    heard()
    try {
      read()
    } catch (error) {
      log(`a line of the program was not understood: ${messageOf(error)}`)
    }
  }
  const onLine = (line: string): void => {
    if (dialect.ignored !== undefined && line.startsWith(dialect.ignored)) return
    const frame = parseLine(line, log)
    if (frame !== undefined) dialect.read(frame, emit)
  }
  return {
    onLine: (line) => guarded(() => onLine(line)),
    onLong(line) {
      log(`a line of ${String(line.bytes)} bytes is in ${line.path}`)
      guarded(() => dialect.readLong(line, emit))
    },
  }
}

/** Starts an agent program and drives it by its dialect. Throws `harness-missing`. */
export async function startAgent(options: DriverOptions, { command, args, env }: AgentCommand, dialect: Dialect): Promise<Agent> {
  const { session, log, silenceMs = SILENCE_MS } = options
  const events = createEventQueue<DriverEvent>()
  const push: Emit = (event) => events.push(event)
  const emit: Emit = (event) => {
    if (event.event === 'turn-ended') turns.end(event)
    else push(event)
  }
  const reader = createReader({ dialect, heard: () => turns.heard(), emit, log })
  const program = spawnProgram({ command, args, env, cwd: session.workspace, spillDir: join(session.home, LONG_LINES), ...reader, log })
  const { write, kill, exited } = program
  const turns = createTurns({ push, write, kill, dialect, silenceMs })
  await program.spawned
  let closing = false
  const over = exited.then((exit) => {
    turns.end({ event: 'turn-ended', ok: false, reason: wordsOf(exit) })
    push({ event: 'exited', ...exit, expected: closing })
    events.end()
  })
  return {
    events,
    emit,
    exited,
    write,
    send(text) {
      if (closing) throw new Error('the program is closed')
      if (turns.isOn()) throw new Error('the program takes one message at a time')
      turns.begin(text)
    },
    interrupt: () => turns.cut('interrupted'),
    async close(graceMs) {
      closing = true
      turns.cut('interrupted')
      await Promise.race([turns.idle(), delay(graceMs / 4)])
      await program.close((graceMs * 3) / 4)
      await over
    },
  }
}
