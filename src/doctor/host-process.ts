import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** A bus host as it is seen from outside. */
export interface HostProcess {
  readonly pid: number
  /** null: it is not ours to read. */
  readonly env: NodeJS.ProcessEnv | null
  /** Text of /proc/PID/cgroup. */
  readonly cgroup: string
}

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

const attempt = <T>(look: () => T): T | null => {
  try {
    return look()
  } catch {
    return null
  }
}

/** proc_locks(5): does this process hold a flock of that file? A pid alone may be anybody's by now. */
function holds(pid: number, { ino }: { readonly ino: number }): boolean {
  const line = new RegExp(`FLOCK +ADVISORY +WRITE +${String(pid)} [0-9a-f]+:[0-9a-f]+:${String(ino)} `)
  return line.test(attempt(() => readFileSync('/proc/locks', 'utf8')) ?? '')
}

function environmentOf(pid: number): NodeJS.ProcessEnv | null {
  const text = attempt(() => readFileSync(`/proc/${String(pid)}/environ`, 'utf8'))
  if (text === null) return null
  const pairs = text.split('\0').filter((pair) => pair.includes('='))
  return Object.fromEntries(pairs.map((pair) => [pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1)]))
}

/** The bus host that holds the data root's lock, found without touching the lock: to try it would refuse a host that starts at this moment. */
export function findHost(root: string): HostProcess | null {
  const lock = readLock(lockPathOf(root))
  if (lock === null || !Number.isInteger(lock.pid) || !holds(lock.pid, lock)) return null
  return { pid: lock.pid, env: environmentOf(lock.pid), cgroup: attempt(() => readFileSync(`/proc/${String(lock.pid)}/cgroup`, 'utf8')) ?? '' }
}
