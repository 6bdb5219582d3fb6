import { existsSync, readdirSync, readFileSync, readlinkSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { AppError } from '../core/errors.ts'

/** As long as a host may take to end its sessions, and more. */
const EXIT_TIMEOUT_MS = 60_000

export interface HostProcess {
  readonly pid: number
  readonly start: string
}

/** Waits until the process of a host is gone: then its lock is free, too. */
export async function waitUntilGone(host: HostProcess, signal: AbortSignal): Promise<void> {
  const { waitGone } = await import('../core/proc.ts')
  if (await waitGone(host, { timeoutMs: EXIT_TIMEOUT_MS, signal })) return
  throw new AppError('timeout', `the bus host (pid ${String(host.pid)}) was told to stop and still runs`, { hint: 'mosaic bus logs' })
}

function holds(pid: number, path: string): boolean {
  try {
    const links = readdirSync(`/proc/${String(pid)}/fd`).map((fd) => {
      try {
        return readlinkSync(`/proc/${String(pid)}/fd/${fd}`)
      } catch {
        return null // closed meanwhile
      }
    })
    return links.includes(path)
  } catch {
    return false
  }
}

/** The process that has the host lock open, by the pid in it; a pid that was given to another since has not. */
export async function findHolder(dataRoot: string): Promise<HostProcess> {
  const { startTimeOf } = await import('../core/proc.ts')
  const path = join(realpathSync(dataRoot), 'bus-host', 'host.lock')
  const pid = Number(/^\d+/.exec(readFileSync(path, 'utf8'))?.[0] ?? Number.NaN)
  const start = Number.isNaN(pid) ? null : startTimeOf(pid)
  if (start === null || !holds(pid, path)) throw new AppError('host-not-running', `no bus host holds ${path}`, { hint: 'mosaic bus start' })
  return { pid, start }
}

/** Stops a host that speaks another version of the protocol: with it only the kernel's word is shared. SIGTERM stops it in order. */
export async function stopBySignal(host: HostProcess, signal: AbortSignal): Promise<void> {
  const { signalProcess } = await import('../core/kernel.ts')
  signalProcess(host, 'SIGTERM')
  await waitUntilGone(host, signal)
}

/** The last act of an orderly stop is to remove its sockets: one that is left is of a host that was killed, by systemd when its time was over. */
export const hasStoppedInOrder = (dataRoot: string): boolean => !existsSync(join(dataRoot, 'bus-host', 'control.sock'))
