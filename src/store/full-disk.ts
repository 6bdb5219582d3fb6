import { dirname } from 'node:path'
import { AppError, errnoOf } from '../core/errors.ts'
import { hasRoom } from './room.ts'

/** SQLite says `disk I/O error` of a full disk wherever it is not the database itself that grows: its shared memory, a quota. */
const MAYBE_FULL = /^SQLITE_(FULL|IOERR|CANTOPEN)/

/** `disk-full` where that is why a store did not open; else undefined. Tried, since a quota shows in no count of free blocks. */
export function asDiskFull(db: string, error: unknown): AppError | undefined {
  const code = errnoOf(error) ?? ''
  if (!['ENOSPC', 'EDQUOT'].includes(code) && !(MAYBE_FULL.test(code) && !hasRoom(db))) return undefined
  return new AppError('disk-full', `${db} cannot be opened: no space is left on its disk`, {
    hint: `make room there, then start again: df -h ${dirname(db)}`,
    cause: error,
  })
}
