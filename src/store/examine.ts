import * as fs from 'node:fs'
import type Database from 'better-sqlite3'
import { AppError, messageOf } from '../core/errors.ts'
import { asDiskFull } from './full-disk.ts'
import { refuseStore, type StoreFiles } from './files.ts'
import { openDatabase } from './sqlite.ts'
import { createTrailVerifier } from './trail-verify.ts'

/** At every start this many records at the end of the trail are checked. */
const TRAIL_TAIL = 1000
/** Up to this size the whole structure is checked at every start, in well under a second. */
const QUICK_CHECK_BYTES = 64 * 1024 * 1024

function check(files: StoreFiles): void {
  let db: Database.Database | undefined
  try {
    db = openDatabase(files.db, { readonly: true, fileMustExist: true })
    if (fs.statSync(files.db).size <= QUICK_CHECK_BYTES) {
      const found = String(db.pragma('quick_check(1)', { simple: true }))
      if (found !== 'ok') throw new Error(found)
    }
    const trail = createTrailVerifier(db).verifyTail(TRAIL_TAIL)
    if (!trail.ok) throw refuseStore(files, 'trail-broken', `the hash chain of the trail is broken at record ${String(trail.firstBad)}`)
  } finally {
    db?.close()
  }
}

const read = (path: string): Buffer | null => (fs.existsSync(path) ? fs.readFileSync(path) : null)

/**
 * Looks inside through a connection that cannot write: closed, it checkpoints nothing, so a store that is refused keeps
 * its every byte. Only the shared-memory index is SQLite's scratch file; it is put back.
 */
export function examine(files: StoreFiles): void {
  const shm = read(files.shm)
  const hadWal = fs.existsSync(files.wal)
  try {
    check(files)
  } catch (error) {
    if (!hadWal) fs.rmSync(files.wal, { force: true })
    if (shm === null) fs.rmSync(files.shm, { force: true })
    else fs.writeFileSync(files.shm, shm)
    if (error instanceof AppError) throw error
    throw asDiskFull(files.db, error) ?? refuseStore(files, 'store-corrupt', messageOf(error), error)
  }
}
