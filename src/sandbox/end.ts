import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Child } from '../core/children.ts'
import { signalProcess } from '../core/kernel.ts'
import type { Log } from '../core/log.ts'
import { type ProcessId, waitGone } from '../core/proc.ts'
import { signalName } from '../core/signals.ts'
import type { CgroupLeaf } from './cgroup.ts'
import type { StatusChannel } from './status.ts'

/** SIGKILLed, and still there after so long: it does not go. */
export const GONE_MS = 10_000

/** How a session's sandbox ended. */
export interface SandboxEnd {
  readonly exitCode: number | null
  /** bubblewrap reports a signal as 128 + n; here it is the signal again, and exitCode null. */
  readonly signal: NodeJS.Signals | null
  readonly outOfMemory: boolean
  /** The channel ended without an exit code: the monitor was killed, or the setup failed. */
  readonly statusLost: boolean
}

/** A code as bubblewrap reports it. Pure. */
export function toOutcome(code: number | null): Pick<SandboxEnd, 'exitCode' | 'signal'> {
  const signal = code === null ? undefined : signalName(code - 128)
  return signal === undefined ? { exitCode: code, signal: null } : { exitCode: null, signal }
}

interface Ending {
  readonly child: Child
  readonly status: StatusChannel
  readonly init: ProcessId
  /** Waits for one that is still being made. */
  readonly leaf: () => Promise<CgroupLeaf | null>
  /** Aborts when a kill has been waited for long enough: what is left hangs in the kernel. */
  readonly hopeless: AbortSignal
  readonly log: Log
}

const AGAIN_MS = 50

/**
 * SIGKILL for pid 1, which takes its whole pid namespace with it. With no descriptor free it cannot be told from a later process of its pid: that is tried
 * again until `signal` aborts. Never rejects.
 */
export async function killInit(init: ProcessId, { log, signal }: { readonly log: Log; readonly signal: AbortSignal }): Promise<void> {
  for (let tries = 0; !signal.aborted; tries++) {
    try {
      signalProcess(init, 'SIGKILL')
      return
    } catch (error) {
      if (tries === 0) log.warn({ err: error, init }, 'a sandbox cannot be killed yet')
    }
    await sleep(AGAIN_MS)
  }
}

async function closeLeaf(leaf: CgroupLeaf | null): Promise<boolean> {
  const outOfMemory = (await leaf?.hasOutOfMemory()) ?? false
  await leaf?.remove().catch(() => undefined)
  return outOfMemory
}

/**
 * Resolves when the monitor has exited and pid 1 is gone; never rejects. Neither ends with the command: pid 1 waits for all that the command left behind
 * (double forks), and a killed monitor leaves everything. So pid 1 is killed here, whatever the end was. What SIGKILL does not end (it hangs on a dead
 * mount) is left behind after a while: it holds the env root's lock, and nobody else.
 */
export async function watchEnd({ child, status, init, leaf, hopeless, log }: Ending): Promise<SandboxEnd> {
  const givenUp = hopeless.aborted ? Promise.resolve() : once(hopeless, 'abort')
  await Promise.race([child.exited.then(() => status.closed), givenUp])
  const code = status.exitCode()
  await killInit(init, { log, signal: hopeless })
  if (!(await waitGone(init, { timeoutMs: GONE_MS, signal: hopeless }))) log.warn({ init }, 'a sandbox hangs in the kernel and was left behind')
  return { ...toOutcome(code), outOfMemory: await closeLeaf(await Promise.race([leaf(), givenUp.then(() => null)])), statusLost: code === null }
}
