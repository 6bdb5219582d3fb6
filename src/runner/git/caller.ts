import { closeSync, constants, fstatSync, openSync, readFileSync, readlinkSync } from 'node:fs'
import { Socket } from 'node:net'
import { AppError } from '../../core/errors.ts'

const { O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_RDWR, O_WRONLY } = constants

/** The process that git started as its remote helper: what it was told, and its streams, which are ours to close. */
export interface Caller {
  readonly args: readonly string[]
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
  readonly input: Socket
  readonly output: Socket
}

/** What is written here is said on the helper's standard error, which may be a socket: proc(5) opens none. */
export interface Words {
  readonly stream: Socket
  /** The same for a child of ours, which must not find it non-blocking. */
  readonly fd: number
}

function openFifo(path: string, flags: number): number {
  const fd = openSync(path, flags)
  if (fstatSync(fd).isFIFO()) return fd
  closeSync(fd)
  throw new AppError('invalid-request', 'git-remote-mosaic is for git to start')
}

/** Opens the FIFO that a helper made. Both ends, so that neither open waits for the other. */
export function openWords(path: string): Words {
  const both = openFifo(path, O_RDWR | O_NONBLOCK | O_NOFOLLOW)
  const stream = new Socket({ fd: both, readable: false, writable: true })
  try {
    // the same one, whatever the path leads to by now
    return { stream, fd: openFifo(`/proc/self/fd/${String(both)}`, O_WRONLY) }
  } catch (error) {
    stream.destroy()
    throw error
  }
}

const strings = (path: string): string[] => readFileSync(path, 'utf8').split('\0').slice(0, -1)

function environmentOf(path: string): Record<string, string> {
  const pairs = strings(path).map((text) => [text.slice(0, text.indexOf('=')), text.slice(text.indexOf('=') + 1)] as const)
  return Object.fromEntries(pairs.filter(([name]) => name !== ''))
}

/** Of the whole process, whichever of its threads is named. */
function assertForeign(dir: string): void {
  const leader = /^Tgid:\t(\d+)$/m.exec(readFileSync(`${dir}/status`, 'utf8'))?.[1]
  // our own descriptors are none of a caller's
  if (leader === String(process.pid)) throw new AppError('invalid-request', 'git-remote-mosaic is for git to start')
}

/**
 * Opens git's two pipes anew, which the helper keeps as 5 and 6 (proc(5)): what is of our own user may be opened, and whoever asks could do as
 * much itself. Throws a system error when it is gone, `invalid-request` where no git is at the other end.
 */
export function openCaller(pid: string): Caller {
  const dir = `/proc/${pid}`
  assertForeign(dir)
  const facts = { args: strings(`${dir}/cmdline`), cwd: readlinkSync(`${dir}/cwd`), env: environmentOf(`${dir}/environ`) }
  const input = new Socket({ fd: openFifo(`${dir}/fd/5`, O_RDONLY | O_NONBLOCK), readable: true, writable: false })
  try {
    const output = new Socket({ fd: openFifo(`${dir}/fd/6`, O_WRONLY | O_NONBLOCK), readable: false, writable: true })
    return { ...facts, input, output }
  } catch (error) {
    input.destroy()
    throw error
  }
}
