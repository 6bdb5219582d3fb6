import { closeSync, openSync } from 'node:fs'
import { Socket } from 'node:net'
import { openPair, posixSpawnProgram, type Program, waitFor, type Waited } from './posix-spawn.ts'
import { signalName } from './signals.ts'

/** A descriptor of ours, which stays ours; a stream; or /dev/null. */
export type Stdio = number | 'pipe' | 'ignore'

/** A started program, as far as a sandbox asks of it. */
export interface Child {
  readonly pid: number
  /** Both null until it has been waited for; from then on its pid may be another's. */
  readonly exitCode: number | null
  readonly signalCode: NodeJS.Signals | null
  /** Our ends of its pipes, by their number in the program. */
  readonly stdio: readonly (Socket | null)[]
  /** Resolves when it has been waited for. */
  readonly exited: Promise<void>
  /** … and all of its pipes are closed. */
  readonly closed: Promise<void>
}

/** The programs that one part of this process has started; it waits for no others. On the main thread, which has the signals. */
export interface Children {
  /** Throws what exec(2) failed with as `code`. */
  start(program: Omit<Program, 'fds'> & { readonly stdio: readonly Stdio[] }): Child
}

interface Ends {
  /** What the program gets. */
  readonly fds: readonly number[]
  /** Our ends of pipes. */
  readonly ours: readonly (number | null)[]
  /** Copies of the program's, of no use to us once it has them. */
  readonly close: () => void
}

function openEnds(stdio: readonly Stdio[]): Ends {
  const opened: number[] = []
  const ours: (number | null)[] = []
  const close = (): void => {
    for (const fd of opened.splice(0)) closeSync(fd)
  }
  const open = (kind: Stdio): number => {
    if (typeof kind === 'number') {
      ours.push(null)
      return kind
    }
    const [mine, theirs] = kind === 'pipe' ? openPair() : [null, openSync('/dev/null', 'r+')]
    opened.push(theirs)
    ours.push(mine)
    return theirs
  }
  try {
    return { fds: stdio.map(open), ours, close }
  } catch (error) {
    close()
    for (const fd of ours) if (fd !== null) closeSync(fd)
    throw error
  }
}

/** The program reads its standard input; of the rest it is not known who reads. A peer that is gone is seen by the close. */
const toStream = (fd: number, number: number): Socket => new Socket({ fd, readable: number > 0, writable: true }).on('error', () => undefined)

function startWith(program: Omit<Program, 'fds'>, stdio: readonly Stdio[]): Pick<Child, 'pid' | 'stdio'> {
  const ends = openEnds(stdio)
  try {
    const pid = posixSpawnProgram({ ...program, fds: ends.fds })
    return { pid, stdio: ends.ours.map((fd, number) => (fd === null ? null : toStream(fd, number))) }
  } catch (error) {
    for (const fd of ends.ours) if (fd !== null) closeSync(fd)
    throw error
  } finally {
    ends.close()
  }
}

function toChild(started: Pick<Child, 'pid' | 'stdio'>, end: Promise<Waited>): Child {
  let how: Waited | undefined
  const exited = end.then((waited) => {
    how = waited
    // nobody reads it any more, and what is only written to learns of no end
    started.stdio[0]?.destroy()
  })
  const closing = started.stdio.map((stream) => new Promise<void>((resolve) => (stream === null ? resolve() : void stream.once('close', resolve))))
  return {
    ...started,
    exited,
    closed: Promise.all([exited, ...closing]).then(() => undefined),
    get exitCode() {
      return how !== undefined && 'exitCode' in how ? how.exitCode : null
    },
    get signalCode() {
      return how !== undefined && 'signal' in how ? (signalName(how.signal) ?? null) : null
    },
  }
}

export function createChildren(): Children {
  const running = new Map<number, (how: Waited) => void>()
  const reap = (): void => {
    // one signal may stand for several ends
    for (const [pid, end] of running) {
      const how = waitFor(pid)
      if (how === null) continue
      running.delete(pid)
      end(how)
    }
    if (running.size === 0) process.off('SIGCHLD', reap)
  }
  return {
    start({ stdio, ...program }) {
      // before the start: a short program ends at once
      if (running.size === 0) process.on('SIGCHLD', reap)
      try {
        const started = startWith(program, stdio)
        return toChild(started, new Promise((resolve) => running.set(started.pid, resolve)))
      } finally {
        if (running.size === 0) process.off('SIGCHLD', reap)
      }
    },
  }
}
