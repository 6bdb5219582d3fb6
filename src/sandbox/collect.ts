import { once } from 'node:events'
import type { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Child } from '../core/children.ts'
import { createGathered } from '../core/gather.ts'

/** SIGKILLed, and still there: it hangs in the kernel (a dead mount). It is left behind. */
const LAST_WAIT_MS = 2000

export interface Collected {
  readonly exitCode: number | null
  readonly signal: NodeJS.Signals | null
  readonly timedOut: boolean
  /** More than the limit was written; it was killed for that. */
  readonly overflow: boolean
  readonly stdout: Buffer
  /** The last 64 KiB. */
  readonly stderr: string
}

interface CollectOptions {
  readonly timeoutMs: number
  readonly stdoutLimitBytes: number
  readonly signal?: AbortSignal | undefined
  /** What else is to be killed, beside the child's process group. */
  readonly alsoKill?: () => void
}

const STDERR_BYTES = 64 * 1024

/** Keeps the end of what is read. */
function keepTail(stream: Readable | null | undefined, limitBytes: number): () => string {
  let tail = Buffer.alloc(0)
  stream?.on('data', (chunk: Buffer) => {
    tail = Buffer.concat([tail, chunk]).subarray(-limitBytes)
  })
  return () => tail.toString('utf8')
}

function keepAll(stream: Readable | null | undefined, limitBytes: number, onOverflow: () => void): () => Buffer {
  const kept = createGathered()
  stream?.on('data', (chunk: Buffer) => {
    const room = limitBytes - kept.length
    kept.push(chunk.subarray(0, room))
    if (chunk.length > room) onOverflow()
  })
  return kept.take
}

/** SIGKILL for a child and its group, which it leads; nothing once it has been waited for, since its pid may be another's then. */
export function killGroup(child: Child): void {
  if (child.exitCode !== null || child.signalCode !== null) return
  try {
    process.kill(-child.pid, 'SIGKILL')
  } catch {
    // gone, and not waited for yet
  }
}

/** Reads a child to its end, which is no later than the deadline. Rejects with the signal's reason when that aborts. */
export async function collect(child: Child, { timeoutMs, stdoutLimitBytes, signal, alsoKill }: CollectOptions): Promise<Collected> {
  const stopped = new AbortController()
  let cause: 'deadline' | 'overflow' | 'abort' | undefined
  const stop = (why: 'deadline' | 'overflow' | 'abort') => (): void => {
    if (cause !== undefined) return
    cause = why
    alsoKill?.()
    killGroup(child)
    stopped.abort()
  }
  const stdout = keepAll(child.stdio[1], stdoutLimitBytes, stop('overflow'))
  const stderr = keepTail(child.stdio[2], STDERR_BYTES)
  const timer = setTimeout(stop('deadline'), timeoutMs)
  const onAbort = stop('abort')
  signal?.addEventListener('abort', onAbort)
  if (signal?.aborted === true) onAbort()
  try {
    const lastWait = once(stopped.signal, 'abort').then(() => sleep(LAST_WAIT_MS, undefined, { ref: false }))
    await Promise.race([child.closed, lastWait])
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', onAbort)
    for (const stream of child.stdio) stream?.destroy()
  }
  if (cause === 'abort') signal?.throwIfAborted()
  return {
    exitCode: child.exitCode,
    signal: child.signalCode,
    timedOut: cause === 'deadline',
    overflow: cause === 'overflow',
    stdout: stdout(),
    stderr: stderr(),
  }
}
