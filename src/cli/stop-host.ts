import { existsSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { AppError } from '../core/errors.ts'
import type { ProcessId } from '../core/proc.ts'

/** As long as a host may take to end its sessions, and more. */
const EXIT_TIMEOUT_MS = 60_000

/** Waits until the process of a host is gone: then its lock is free, too. */
export async function waitUntilGone(host: ProcessId, signal: AbortSignal): Promise<void> {
  const { waitGone } = await import('../core/proc.ts')
  if (await waitGone(host, { timeoutMs: EXIT_TIMEOUT_MS, signal })) return
  throw new AppError('timeout', `the bus host (pid ${String(host.pid)}) was told to stop and still runs`, { hint: 'mosaic bus logs' })
}

/** The process of the host that has this data root. Throws `host-not-running`. */
export async function findHolder(dataRoot: string): Promise<ProcessId> {
  const { findHolder: find, lockPathOf } = await import('../client/host-holder.ts')
  const root = realpathSync(dataRoot)
  const holder = find(root)
  if (holder === null) throw new AppError('host-not-running', `no bus host holds ${lockPathOf(root)}`, { hint: 'mosaic bus start' })
  return holder
}

/** Stops a host that speaks another version of the protocol: with it only the kernel's word is shared. SIGTERM stops it in order. */
export async function stopBySignal(host: ProcessId, signal: AbortSignal): Promise<void> {
  const { signalProcess } = await import('../core/kernel.ts')
  signalProcess(host, 'SIGTERM')
  await waitUntilGone(host, signal)
}

/** The last act of an orderly stop is to remove its sockets: one that is left is of a host that was killed, by systemd when its time was over. */
export const hasStoppedInOrder = (dataRoot: string): boolean => !existsSync(join(dataRoot, 'bus-host', 'control.sock'))
