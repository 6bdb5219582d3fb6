import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { messageOf } from '../core/errors.ts'
import { createTurns } from './agent-turn.ts'
import type { Driver, DriverEvent, DriverOptions } from './contract.ts'
import type { Dialect, Emit, Frame } from './dialect.ts'
import { createEventQueue } from './events.ts'
import type { LongLine } from './lines.ts'
import { type ProgramExit, spawnProgram } from './process.ts'

const SILENCE_MS = 15 * 60_000
const LONG_LINES = '.mosaic/long-lines'

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
