import { constants } from 'node:os'
import type { Child } from '../core/children.ts'
import { signalProcess } from '../core/kernel.ts'
import { type ProcessId, waitGone } from '../core/proc.ts'
import type { CgroupLeaf } from './cgroup.ts'
import type { StatusChannel } from './status.ts'

/** How a session's sandbox ended. */
export interface SandboxEnd {
  readonly exitCode: number | null
  /** bubblewrap reports a signal as 128 + n; here it is the signal again, and exitCode null. */
  readonly signal: NodeJS.Signals | null
  readonly outOfMemory: boolean
  /** The channel ended without an exit code: the monitor was killed, or the setup failed. */
  readonly statusLost: boolean
}

/** Some have two names (SIGABRT, SIGIOT): the first is the one that people know, and of entries a map keeps the last. */
const SIGNALS: ReadonlyMap<number, NodeJS.Signals> = new Map(
  Object.entries(constants.signals)
    .reverse()
    .map(([name, number]) => [128 + number, name as NodeJS.Signals]),
)

/** A code as bubblewrap reports it. Pure. */
export function toOutcome(code: number | null): Pick<SandboxEnd, 'exitCode' | 'signal'> {
  const signal = code === null ? undefined : SIGNALS.get(code)
  return signal === undefined ? { exitCode: code, signal: null } : { exitCode: null, signal }
}

interface Ending {
  readonly child: Child
  readonly status: StatusChannel
  readonly init: ProcessId
  readonly leaf: () => CgroupLeaf | null
}

/** SIGKILL for pid 1 takes its whole pid namespace with it. */
export const killInit = (init: ProcessId): boolean => signalProcess(init, 'SIGKILL')

async function closeLeaf(leaf: CgroupLeaf | null): Promise<boolean> {
  const outOfMemory = (await leaf?.hasOutOfMemory()) ?? false
  await leaf?.remove().catch(() => undefined)
  return outOfMemory
}

/**
 * Resolves when the monitor has exited and pid 1 is gone; never rejects. Neither ends with the command: pid 1 waits for all that the command left behind
 * (double forks), and a killed monitor leaves everything. So pid 1 is killed here, whatever the end was.
 */
export async function watchEnd({ child, status, init, leaf }: Ending): Promise<SandboxEnd> {
  await child.exited
  await status.closed
  const code = status.exitCode()
  killInit(init)
  await waitGone(init, { timeoutMs: Number.POSITIVE_INFINITY })
  return { ...toOutcome(code), outOfMemory: await closeLeaf(leaf()), statusLost: code === null }
}
