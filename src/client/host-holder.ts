import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type ProcessId, startTimeOf } from '../core/proc.ts'

const PID_BYTES = 32

export const lockPathOf = (root: string): string => join(root, 'bus-host', 'host.lock')

/** The pid that a bus host wrote into its lock file, and the file's identity; null when there is no such file. */
function readLock(path: string): { readonly pid: number; readonly ino: number } | null {
  let fd: number
  try {
    fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  } catch {
    return null
  }
  try {
    const stat = fstatSync(fd)
    if (!stat.isFile() || stat.size > PID_BYTES) return null
    return { pid: Number.parseInt(readFileSync(fd, 'utf8'), 10), ino: stat.ino }
  } finally {
    closeSync(fd)
  }
}

function locks(): string {
  try {
    return readFileSync('/proc/locks', 'utf8')
  } catch {
    return ''
  }
}

/** proc_locks(5): does this process hold a flock of that file? A pid alone may be anybody's by now. */
const holds = (pid: number, ino: number): boolean => new RegExp(`FLOCK +ADVISORY +WRITE +${String(pid)} [0-9a-f]+:[0-9a-f]+:${String(ino)} `).test(locks())

/** The bus host that has this data root (links followed), found without touching its lock: to try it would refuse a host that starts at this moment. */
export function findHolder(root: string): ProcessId | null {
  const lock = readLock(lockPathOf(root))
  if (lock === null || !Number.isInteger(lock.pid)) return null
  // before the look at the locks: a process that comes after it holds none
  const start = startTimeOf(lock.pid)
  return start === null || !holds(lock.pid, lock.ino) ? null : { pid: lock.pid, start }
}
