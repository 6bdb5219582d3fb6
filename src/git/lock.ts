import { closeSync, constants, fstatSync, openSync, statSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import lockfile from 'proper-lockfile'
import { AppError, codeOf, errnoOf } from '../core/errors.ts'
import { tryFlock } from '../core/kernel.ts'
import type { Log } from '../core/log.ts'
import { orDiskFull } from './disk-full.ts'

const STALE_MS = 30_000
const HEARTBEAT_MS = 5_000
const RETRY_MS = 100

export interface LockOptions {
  readonly timeoutMs: number
  readonly signal?: AbortSignal | undefined
}

/** The per-repository lock: one at a time, in this process in the order of asking, and against other processes by a lock directory. */
export interface RepositoryLocks {
  /** Runs `work` while the lock is held; its signal aborts when the lock is lost. Throws `busy` when it is not free in time, `interrupted` when the wait is cancelled. */
  withLock<T>(repository: string, options: LockOptions, work: (held: AbortSignal) => Promise<T>): Promise<T>
}

/** Where the lock of a repository is. */
export const lockPathOf = (repository: string): string => `${repository}.lock`

const openLock = (path: string): number => openSync(path, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW)

/**
 * Marks a lock directory as held by a living process: the kernel's lock on it goes with its holder, whatever that died of, so that what a
 * crash left is told from what somebody holds. Returns the end of it. flock(2)
 */
function mark(path: string): () => void {
  const fd = openLock(path)
  const [held, named] = [fstatSync(fd), statSync(path, { throwIfNoEntry: false })]
  if (tryFlock(fd) && named?.ino === held.ino) return () => closeSync(fd)
  closeSync(fd)
  throw busy()
}

/** A lock that has been marked, to be released as one. */
async function marked(repository: string, release: () => Promise<void>): Promise<() => Promise<void>> {
  try {
    const unmark = mark(lockPathOf(repository))
    return () => release().finally(unmark)
  } catch (error) {
    // without its mark the next start would take it away
    await release().catch(() => undefined)
    throw errnoOf(error) === 'ENOENT' ? busy() : error
  }
}

/** Does a living process hold this lock directory? A crash leaves one that nobody holds. */
export function isLockLive(path: string): boolean {
  let fd: number
  try {
    fd = openLock(path)
  } catch (error) {
    if (['ENOENT', 'ENOTDIR', 'ELOOP'].includes(errnoOf(error) ?? '')) return false
    throw error
  }
  try {
    return !tryFlock(fd)
  } finally {
    closeSync(fd)
  }
}

const busy = (): AppError => new AppError('busy', 'another push or launch is at work in the repository')
const cancelled = (): AppError => new AppError('interrupted', 'cancelled while waiting for the repository')

/** Is it held by another process? ENOENT: what we had just made was taken away as one that a crash left. */
const isTaken = (error: unknown): boolean => codeOf(error) === 'busy' || ['ELOCKED', 'ENOENT'].includes(errnoOf(error) ?? '')

/** Waits for the earlier holder of this process, at most so long. */
async function waitTurn(earlier: Promise<unknown>, { timeoutMs, signal }: LockOptions): Promise<void> {
  const given = new AbortController()
  const late = new Promise<never>((_, reject) => {
    const timer = setTimeout(() => reject(busy()), timeoutMs)
    signal?.addEventListener('abort', () => reject(cancelled()), { signal: given.signal })
    given.signal.addEventListener('abort', () => clearTimeout(timer))
  })
  try {
    await Promise.race([earlier, late])
  } finally {
    given.abort()
  }
}

export function createRepositoryLocks({ log }: { readonly log: Log }): RepositoryLocks {
  const tails = new Map<string, Promise<void>>()

  const take = async (repository: string, lost: AbortController): Promise<() => Promise<void>> => {
    const onCompromised = (error: Error): void => {
      log.warn({ err: error, repository }, 'repository lock lost')
      lost.abort(busy())
    }
    const options = { realpath: false, stale: STALE_MS, update: HEARTBEAT_MS, onCompromised }
    return marked(repository, await lockfile.lock(repository, options))
  }

  /** Asks again until `end`, by the monotonic clock: another process does not say when it is done. */
  const acquire = async (repository: string, end: number, signal: AbortSignal | undefined, lost: AbortController): Promise<() => Promise<void>> => {
    for (;;) {
      if (signal?.aborted === true) throw cancelled()
      try {
        return await take(repository, lost)
      } catch (error) {
        if (!isTaken(error)) throw orDiskFull(error, 'the repository cannot be locked')
        if (performance.now() >= end) throw errnoOf(error) === 'ELOCKED' ? busy() : error
      }
      await sleep(RETRY_MS, undefined, { signal }).catch(() => undefined)
    }
  }

  const hold = async <T>(repository: string, end: number, signal: AbortSignal | undefined, work: (held: AbortSignal) => Promise<T>): Promise<T> => {
    const lost = new AbortController()
    const release = await acquire(repository, end, signal, lost)
    try {
      return await work(lost.signal)
    } finally {
      // a lock that was lost is not ours to release
      await release().catch((error: unknown) => log.debug({ err: error, repository }, 'repository lock not released'))
    }
  }

  return {
    withLock(repository, options, work) {
      const earlier = tails.get(repository) ?? Promise.resolve()
      const end = performance.now() + options.timeoutMs
      const run = waitTurn(earlier, options).then(() => hold(repository, end, options.signal, work))
      const tail: Promise<void> = Promise.allSettled([earlier, run]).then(() => {
        if (tails.get(repository) === tail) tails.delete(repository)
      })
      tails.set(repository, tail)
      return run
    },
  }
}
