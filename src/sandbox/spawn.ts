import { closeSync } from 'node:fs'
import type { Socket } from 'node:net'
import type { Writable } from 'node:stream'
import type { Child, Stdio } from '../core/children.ts'
import { openMemoryFile } from '../core/kernel.ts'
import { type ProcessId, startTimeOf } from '../core/proc.ts'
import { type Descriptor, FIRST_DESCRIPTOR, toArguments } from './argv.ts'
import { type Bwrap, startBwrap } from './bwrap.ts'
import type { SandboxPlan } from './plan.ts'
import { killGroup } from './collect.ts'
import { seccompProgram } from './seccomp.ts'
import { assertSources } from './sources.ts'
import { readStatus, type StatusChannel } from './status.ts'

export interface SpawnRequest {
  readonly plan: SandboxPlan
  readonly command: readonly string[]
  /** A session; else it dies with the host. */
  readonly outlivesHost?: boolean
  /** The open file description of the env root's lock, for pid 1 to hold. The caller keeps its own. */
  readonly lockFd: number | null
  readonly stdout: 'pipe' | 'ignore'
  readonly stderr: 'pipe' | number
}

export interface Spawned {
  readonly child: Child
  readonly monitor: ProcessId
  readonly status: StatusChannel
  readonly stdin: Writable
  /** Written or closed, it lets the command start. */
  readonly block: Writable
}

/** Numbers for what bubblewrap reads, pipes for what we read; `opened` is ours to close once the child has them. */
function toStdio(descriptors: readonly Descriptor[], args: readonly string[], lockFd: number | null): { stdio: Stdio[]; opened: number[] } {
  const opened: number[] = []
  const file = (name: string, content: Buffer): number => {
    const fd = openMemoryFile(name, content)
    opened.push(fd)
    return fd
  }
  const open = (descriptor: Descriptor): Stdio => {
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
  }
  try {
    return { stdio: descriptors.map(open), opened }
  } catch (error) {
    for (const fd of opened) closeSync(fd)
    throw error
  }
}

function streamOf({ stdio }: Child, descriptors: readonly Descriptor[], role: Descriptor['role']): Socket | null {
  const index = descriptors.findIndex((descriptor) => descriptor.role === role)
  return (index < 0 ? null : stdio[FIRST_DESCRIPTOR + index]) ?? null
}

function toSpawned(child: Child, descriptors: readonly Descriptor[]): Spawned {
  try {
    const [stdin = null] = child.stdio
    const [status, block] = [streamOf(child, descriptors, 'status'), streamOf(child, descriptors, 'block')]
    if (status === null || block === null || stdin === null) throw new Error('bubblewrap has no pipes')
    const monitor = { pid: child.pid, start: startTimeOf(child.pid) ?? '' }
    return { child, monitor, status: readStatus(status), stdin, block }
  } catch (error) {
    killGroup(child)
    for (const stream of child.stdio) stream?.destroy()
    throw error
  }
}

/** Starts bubblewrap. From the main thread, since --die-with-parent follows the thread. Throws `sandbox-unavailable` when the program cannot be run or a source is forbidden. */
export async function spawnBwrap(bwrap: Bwrap, request: SpawnRequest, signal?: AbortSignal): Promise<Spawned> {
  const { plan, command, outlivesHost = false, lockFd } = request
  assertSources(plan.steps, plan.forbidden)
  const { bindFd } = await bwrap.features(signal)
  const { args, descriptors } = toArguments(plan, { bindFd, outlivesHost, locked: lockFd !== null })
  const { stdio, opened } = toStdio(descriptors, args, lockFd)
  try {
    const child = startBwrap(bwrap, ['--args', String(FIRST_DESCRIPTOR), '--', ...command], ['pipe', request.stdout, request.stderr, ...stdio])
    return toSpawned(child, descriptors)
  } finally {
    for (const fd of opened) closeSync(fd)
  }
}
