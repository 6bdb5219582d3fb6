import { closeSync, constants, fstatSync, ftruncateSync, lstatSync, openSync, readFileSync, writeSync } from 'node:fs'
import { AppError } from '../core/errors.ts'
import { tryFlock } from '../core/kernel.ts'

const ATTEMPTS = 5

export interface HostLock extends AsyncDisposable {
  readonly fd: number
}

const holder = (path: string): string => {
  const pid = /^\d+/.exec(readFileSync(path, 'utf8'))?.[0]
  return pid === undefined ? 'another bus host' : `another bus host (pid ${pid})`
}

function take(path: string): number | undefined {
  const fd = openSync(path, constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW | constants.O_NONBLOCK, 0o600)
  const opened = fstatSync(fd)
  if (!opened.isFile() || opened.nlink > 1) {
    closeSync(fd)
    throw new AppError('data-root-unsafe', `${path} is no plain file of ours`, { hint: `move it aside: mv ${path} ${path}.aside` })
  }
  if (!tryFlock(fd)) {
    closeSync(fd)
    throw new AppError('host-running', `${holder(path)} holds ${path}`, { hint: 'mosaic bus status' })
  }
  // a lock file that was unlinked and made again has two holders
  const named = lstatSync(path, { throwIfNoEntry: false })
  if (named?.ino === opened.ino && named.dev === opened.dev) return fd
  closeSync(fd)
  return undefined
}

/** Takes the data root's kernel lock and writes our pid into it. Throws `host-running` naming the pid of who holds it. flock(2) */
export function openHostLock(path: string): HostLock {
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const fd = take(path)
    if (fd === undefined) continue
    ftruncateSync(fd)
    writeSync(fd, `${String(process.pid)}\n`, 0)
    let open = true
    return {
      fd,
      [Symbol.asyncDispose]: () => {
        if (open) closeSync(fd)
        open = false
        return Promise.resolve()
      },
    }
  }
  throw new AppError('busy', `${path} keeps being replaced`)
}
