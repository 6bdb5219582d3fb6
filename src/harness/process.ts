import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import { AppError, errnoOf, messageOf } from '../core/errors.ts'
import { createLineReader, type LongLine } from './lines.ts'

/** How long what an ended program had written may take to be read; a child of its own may hold the pipe open. */
const DRAIN_MS = 500
const LOG_LINE_CHARACTERS = 2000
const LOG_LINES_A_RUN = 2000

export interface ProgramExit {
  readonly code: number | null
  readonly signal: string | null
}

/** An agent program that talks in lines of JSON. */
export interface Program {
  /** Resolves when it runs. Rejects with `harness-missing` when there is no such program. */
  readonly spawned: Promise<void>
  /** Writes one line; nothing once its input is closed. */
  readonly write: (frame: object) => void
  /** Resolves when it is gone and all that it wrote has been read. */
  readonly exited: Promise<ProgramExit>
  /** EOF, SIGTERM after half of `graceMs`, SIGKILL of its process group after all of it; resolves when it is gone. Idempotent. */
  readonly close: (graceMs: number) => Promise<void>
  readonly kill: () => void
}

export interface ProgramOptions {
  readonly command: string
  readonly args: readonly string[]
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
  readonly spillDir: string
  readonly onLine: (line: string) => void
  readonly onLong: (line: LongLine) => void
  readonly log: (line: string) => void
}

/** Every line of its standard error, in runner.log; past a number of lines they are read and dropped. */
function drainErrors(child: ChildProcessWithoutNullStreams, { log, spillDir }: ProgramOptions): void {
  let lines = 0
  const write = (line: string): void => {
    if (line.trim() === '') return
    if (++lines <= LOG_LINES_A_RUN) log(`stderr: ${line.slice(0, LOG_LINE_CHARACTERS)}`)
    if (lines === LOG_LINES_A_RUN) log('stderr: no more of it is written down')
  }
  const reader = createLineReader({ onLine: write, onLong: ({ head }) => write(head), spillDir: `${spillDir}-stderr` })
  child.stderr.on('data', (chunk: Buffer) => reader.push(chunk))
  child.stderr.on('end', () => reader.end())
}

function readLines(child: ChildProcessWithoutNullStreams, options: ProgramOptions): void {
  const reader = createLineReader(options)
  child.stdout.on('data', (chunk: Buffer) => reader.push(chunk))
  child.stdout.on('end', () => reader.end())
}

/** It leads a process group of its own, so that the group can be ended with it. */
function killGroup({ pid }: ChildProcessWithoutNullStreams, signal: NodeJS.Signals): void {
  if (pid === undefined) return
  try {
    process.kill(-pid, signal)
  } catch {
    // it is gone already
  }
}

async function untilSpawned(child: ChildProcessWithoutNullStreams, command: string): Promise<void> {
  try {
    await once(child, 'spawn')
  } catch (error) {
    const code = errnoOf(error)
    const isMissing = code === 'ENOENT' || code === 'EACCES'
    throw isMissing ? new AppError('harness-missing', `${command} cannot be run: ${messageOf(error)}`) : error
  }
}

async function untilExited(child: ChildProcessWithoutNullStreams): Promise<ProgramExit> {
  const closed = once(child, 'close')
  closed.catch(() => undefined)
  const [code, signal] = (await once(child, 'exit')) as [number | null, string | null]
  await Promise.race([closed, delay(DRAIN_MS)])
  child.stdout.destroy()
  child.stderr.destroy()
  // what it left in its group goes with it
  killGroup(child, 'SIGKILL')
  return { code, signal }
}

/** EOF, then a signal at each half of the grace. */
async function endWithin(child: ChildProcessWithoutNullStreams, exited: Promise<unknown>, graceMs: number): Promise<void> {
  child.stdin.end()
  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    const timer = new AbortController()
    const passed = delay(graceMs / 2, true, { signal: timer.signal }).catch(() => false)
    const isLate = await Promise.race([exited.then(() => false), passed])
    timer.abort()
    if (isLate) killGroup(child, signal)
  }
  await exited
}

export function spawnProgram(options: ProgramOptions): Program {
  const { command, args, cwd, env } = options
  const child = spawn(command, args, { cwd, env, detached: true, stdio: ['pipe', 'pipe', 'pipe'] })
  child.stdin.on('error', () => undefined)
  const spawned = untilSpawned(child, command)
  const exited = untilExited(child)
  // a program that was never there has no exit: `spawned` says so
  exited.catch(() => undefined)
  readLines(child, options)
  drainErrors(child, options)
  let closing: Promise<void> | undefined
  return {
    spawned,
    exited,
    write(frame) {
      if (child.stdin.writable) child.stdin.write(`${JSON.stringify(frame)}\n`)
    },
    close: (graceMs) => (closing ??= endWithin(child, exited, graceMs)),
    kill: () => killGroup(child, 'SIGKILL'),
  }
}
