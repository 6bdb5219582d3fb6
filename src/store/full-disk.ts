import { closeSync, openSync, rmSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import { AppError, errnoOf } from '../core/errors.ts'

const FULL: readonly string[] = ['ENOSPC', 'EDQUOT']
/** SQLite says `disk I/O error` of a full disk wherever it is not the database itself that grows: its shared memory, a quota. */
const MAYBE_FULL = /^SQLITE_(FULL|IOERR|CANTOPEN)/
const TRIED_BYTES = 64 * 1024

/** Tried, since a quota shows in no count of free blocks. */
function hasRoom(directory: string): boolean {
  const path = `${directory}/mosaic.db.room`
  try {
    const fd = openSync(path, 'w', 0o600)
    try {
      return writeSync(fd, Buffer.alloc(TRIED_BYTES)) === TRIED_BYTES
    } finally {
      closeSync(fd)
    }
  } catch (error) {
    return !FULL.includes(errnoOf(error) ?? '')
  } finally {
    rmSync(path, { force: true })
  }
}

/** `disk-full` where that is why a store did not open; else undefined. */
export function asDiskFull(db: string, error: unknown): AppError | undefined {
  const code = errnoOf(error) ?? ''
  if (!FULL.includes(code) && !(MAYBE_FULL.test(code) && !hasRoom(dirname(db)))) return undefined
  return new AppError('disk-full', `${db} cannot be opened: no space is left on its disk`, {
    hint: `make room there, then start again: df -h ${dirname(db)}`,
    cause: error,
  })
}
