import { type ChildProcess, spawn, type StdioOptions } from 'node:child_process'
import { once } from 'node:events'
import { closeSync } from 'node:fs'
import { Readable, Writable } from 'node:stream'
import { errnoOf, messageOf } from '../core/errors.ts'
import { openMemoryFile } from '../core/kernel.ts'
import { type ProcessId, startTimeOf } from '../core/proc.ts'
import { type Descriptor, FIRST_DESCRIPTOR, toArguments } from './argv.ts'
import { type Bwrap, failed, missing } from './bwrap.ts'
import type { SandboxPlan } from './plan.ts'
import { seccompProgram } from './seccomp.ts'
import { assertSources } from './sources.ts'
import { readStatus, type StatusChannel } from './status.ts'

export interface SpawnRequest {
  readonly plan: SandboxPlan
  readonly command: readonly string[]
  readonly blocked: boolean
  /** A session; else it dies with the host. */
  readonly outlivesHost?: boolean
  /** The open file description of the env root's lock, for pid 1 to hold. The caller keeps its own. */
  readonly lockFd: number | null
  readonly stdout: 'pipe' | 'ignore'
  readonly stderr: 'pipe' | number
}

export interface Spawned {
  readonly child: ChildProcess
  readonly monitor: ProcessId
  readonly status: StatusChannel
  readonly stdin: Writable
  /** Written or closed, it lets the command start; null when there is no block. */
  readonly block: Writable | null
}

/** Numbers for what bubblewrap reads, pipes for what we read; `opened` is ours to close once the child has them. */
function toStdio(descriptors: readonly Descriptor[], args: readonly string[], lockFd: number | null): { stdio: (number | 'pipe')[]; opened: number[] } {
  const opened: number[] = []
  const file = (name: string, content: Buffer): number => {
    const fd = openMemoryFile(name, content)
    opened.push(fd)
    return fd
  }
  const stdio = descriptors.map((descriptor): number | 'pipe' => {
    switch (descriptor.role) {
      case 'arguments':
        return file('arguments', Buffer.from(args.map((arg) => `${arg}\0`).join('')))
      case 'seccomp':
        return file('seccomp', seccompProgram())
      case 'data':
        return file('data', Buffer.from(descriptor.text))
      case 'pinned':
        return descriptor.fd
      case 'lock':
        if (lockFd === null) throw new Error('a plan with a lock needs its descriptor')
        return lockFd
      case 'status':
      case 'block':
        return 'pipe'
    }
  })
  return { stdio, opened }
}

function streamOf<T>(child: ChildProcess, descriptors: readonly Descriptor[], role: Descriptor['role'], type: abstract new () => T): T | null {
  const index = descriptors.findIndex((descriptor) => descriptor.role === role)
  const stream: unknown = index < 0 ? null : child.stdio[FIRST_DESCRIPTOR + index]
  return stream instanceof type ? stream : null
}

async function failure(path: string, child: ChildProcess): Promise<Error> {
  const [error] = (await once(child, 'error')) as [unknown]
  return errnoOf(error) === 'ENOENT' ? missing(path) : failed(path, messageOf(error), error)
}

/**
 * Starts bubblewrap with an empty environment, as the leader of its own session: a Ctrl-C in the host's terminal must not reach it. From the main thread,
 * since --die-with-parent follows the thread. Throws `sandbox-unavailable` when the program cannot be run or a source is forbidden.
 */
export async function spawnBwrap(bwrap: Bwrap, request: SpawnRequest, signal?: AbortSignal): Promise<Spawned> {
  const { plan, command, blocked, outlivesHost = false, lockFd } = request
  assertSources(plan.steps, plan.forbidden)
  const { bindFd } = await bwrap.features(signal)
  const { args, descriptors } = toArguments(plan, { bindFd, blocked, outlivesHost, locked: lockFd !== null })
  const { stdio, opened } = toStdio(descriptors, args, lockFd)
  try {
    const all: StdioOptions = ['pipe', request.stdout, request.stderr, ...stdio]
    const child = spawn(bwrap.path, ['--args', String(FIRST_DESCRIPTOR), '--', ...command], { env: {}, cwd: '/', detached: true, stdio: all })
    if (child.pid === undefined) throw await failure(bwrap.path, child)
    const status = streamOf(child, descriptors, 'status', Readable)
    const stdin: Writable | null = child.stdin
    if (status === null || stdin === null) throw new Error('spawn made no pipes')
    const block = streamOf(child, descriptors, 'block', Writable)
    // a reader that is gone is seen by its end
    for (const stream of [stdin, block]) stream?.on('error', () => undefined)
    const monitor = { pid: child.pid, start: startTimeOf(child.pid) ?? '' }
    return { child, monitor, status: readStatus(status), stdin, block }
  } finally {
    for (const fd of opened) closeSync(fd)
  }
}
