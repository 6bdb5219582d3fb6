import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { setImmediate as nextPoll } from 'node:timers/promises'
import { messageOf } from '../core/errors.ts'

const OUTPUT_BYTES = 16 * 1024 * 1024
const SHELL_FAILED = 127
const SIGNAL_BASE = 128
/** The numbers that a shell adds to 128 (signal(7)); only what can end a shell here. */
const SIGNALS: Readonly<Record<string, number>> = {
  SIGHUP: 1,
  SIGINT: 2,
  SIGQUIT: 3,
  SIGILL: 4,
  SIGABRT: 6,
  SIGFPE: 8,
  SIGKILL: 9,
  SIGSEGV: 11,
  SIGPIPE: 13,
  SIGTERM: 15,
}

export interface ShellResult {
  /** Standard output and error as they came. */
  readonly output: string
  readonly exitCode: number
}

interface Collected {
  readonly chunks: Buffer[]
  bytes: number
  dropped: number
}

function collect(stream: NodeJS.ReadableStream): Collected {
  const collected: Collected = { chunks: [], bytes: 0, dropped: 0 }
  stream.on('data', (chunk: Buffer) => {
    const room = OUTPUT_BYTES - collected.bytes
    const kept = chunk.length <= room ? chunk : chunk.subarray(0, room)
    if (kept.length > 0) collected.chunks.push(kept)
    collected.bytes += kept.length
    collected.dropped += chunk.length - kept.length
  })
  return collected
}

/** What the ended shell had written is in the socket's buffer already: a whole turn of the loop without a byte means that it is read. */
async function drain(collected: Collected, signal: AbortSignal): Promise<void> {
  for (let seen = -1; seen !== collected.bytes && collected.dropped === 0 && !signal.aborted;) {
    seen = collected.bytes
    await nextPoll()
    await nextPoll()
  }
}

function toText({ chunks, dropped }: Collected): string {
  const text = Buffer.concat(chunks).toString('utf8')
  return dropped === 0 ? text : `${text}\n[cut: ${String(dropped)} bytes more]\n`
}

function killGroup(child: ChildProcess): void {
  if (child.pid === undefined) return
  try {
    process.kill(-child.pid, 'SIGKILL')
  } catch {
    // the group is gone already
  }
}

/**
 * Runs `/bin/sh -c command` in a process group of its own until the shell ends; what it left in the background does not hold it up.
 * An abort of `signal` kills the group.
 */
export async function runShell(command: string, options: { cwd: string; env: Readonly<Record<string, string>> }, signal: AbortSignal): Promise<ShellResult> {
  // one stream for both keeps their order
  const child = spawn('/bin/sh', ['-c', 'exec /bin/sh -c "$1" 2>&1', 'sh', command], { ...options, detached: true, stdio: ['ignore', 'pipe', 'ignore'] })
  const abort = (): void => killGroup(child)
  signal.addEventListener('abort', abort)
  try {
    const collected = collect(child.stdout)
    const [code, name] = (await once(child, 'exit')) as [number | null, string | null]
    await drain(collected, signal)
    return { output: toText(collected), exitCode: code ?? SIGNAL_BASE + (SIGNALS[name ?? ''] ?? 0) }
  } catch (error) {
    return { output: `/bin/sh: ${messageOf(error)}\n`, exitCode: SHELL_FAILED }
  } finally {
    signal.removeEventListener('abort', abort)
    child.stdout.destroy()
  }
}
