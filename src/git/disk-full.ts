import { AppError, errnoOf } from '../core/errors.ts'
import type { HelperResult } from '../core/run-helper.ts'

/** Kept free for what must still be written when a push or a bundle has taken its share. */
const RESERVE_BYTES = 512 * 1024 * 1024

/** EFBIG: a limit on the size of files, met where the disk itself would do. */
const FULL: readonly string[] = ['ENOSPC', 'EDQUOT', 'EFBIG']
/** strerror(3) in the locale that every git of ours has; signal 25 is SIGXFSZ. */
const WORDS = /(No space left on device|Disk quota exceeded|File too large|File size limit exceeded|died of signal 25$)/m
/** 128 + SIGXFSZ, as a shell tells it. */
const FILE_LIMIT_EXIT = 153

const diskFull = (what: string, cause?: unknown): AppError =>
  new AppError('disk-full', `${what}: no space is left on the disk of the bus host`, { hint: 'mosaic gc', ...(cause === undefined ? {} : { cause }) })

/** A system error that means a full disk as `disk-full`; any other error as it is. */
export const orDiskFull = (error: unknown, what: string): unknown =>
  !(error instanceof AppError) && FULL.includes(errnoOf(error) ?? '') ? diskFull(what, error) : error

/**
 * Throws `disk-full` where a git that failed met one. It says so in words alone; an agent that put these words into a name in its
 * push gets the wrong refusal, and a refusal all the same.
 */
export function assertRoom({ exitCode, signal, stderr }: HelperResult, what: string): void {
  if (exitCode === 0) return
  if (WORDS.test(stderr) || exitCode === FILE_LIMIT_EXIT || signal === 'SIGXFSZ') throw diskFull(what)
}

const inMiB = (bytes: number): string => `${String(Math.floor(bytes / 1024 ** 2))} MiB`

/** Throws `disk-full` unless what takes that size leaves the reserve. */
export function assertFree(freeBytes: number, sizeBytes: number, what: string): void {
  if (freeBytes >= RESERVE_BYTES + sizeBytes) return
  const needs = inMiB(RESERVE_BYTES + sizeBytes)
  throw new AppError('disk-full', `${inMiB(freeBytes)} are free on the disk of the bus host, and ${what} needs ${needs}`, { hint: 'mosaic gc' })
}
