import * as fs from 'node:fs'
import { AppError, messageOf } from '../core/errors.ts'
import { judgeFiles, storeFiles } from './files.ts'
import { readMigrations } from './migrations.ts'
import { openDatabase } from './sqlite.ts'
import { createTrailVerifier } from './trail-verify.ts'

/** A store as one file that no host has open. */
export interface SnapshotFacts {
  /** Version of the store. */
  readonly schema: number
  readonly records: number
  readonly head: string
}

/** A copy of a store that no host has open: the caller holds the host lock. Throws `store-…`, and `store-not-found` where there never was one. */
export async function copyStore(dataRoot: string, path: string): Promise<void> {
  const files = storeFiles(dataRoot)
  if (judgeFiles(files, readMigrations().length) === 'new') throw new AppError('store-not-found', `${dataRoot} holds no store`, { hint: 'mosaic bus start' })
  const db = openDatabase(files.db, { readonly: true, fileMustExist: true })
  try {
    await db.backup(path)
  } finally {
    db.close()
  }
}

/**
 * Makes a copy fit for another place: its live runs name processes that are none of a restored host's, which would kill
 * them where both are on one machine. One file afterwards, without a write-ahead log.
 */
export function detachSnapshot(path: string): void {
  const db = openDatabase(path, { fileMustExist: true })
  try {
    db.exec(`UPDATE sessions SET monitor_pid = NULL, monitor_start = NULL, init_pid = NULL, init_start = NULL, runner_pid = NULL, runner_start = NULL,
      boot_id = NULL WHERE state <> 'ended'`)
    db.pragma('journal_mode = DELETE')
  } finally {
    db.close()
  }
  fs.chmodSync(path, 0o600)
}

/** Checks a copy whole: its structure, and every record of the trail. Throws `store-corrupt`, `trail-broken`. */
export async function describeSnapshot(path: string): Promise<SnapshotFacts> {
  const db = openDatabase(path, { readonly: true, fileMustExist: true })
  try {
    const found = String(db.pragma('integrity_check(1)', { simple: true }))
    if (found !== 'ok') throw new AppError('store-corrupt', `${path} is damaged (${found})`)
    const { ok, firstBad, records, head } = await createTrailVerifier(db).verify()
    if (!ok) throw new AppError('trail-broken', `the hash chain of the trail is broken at record ${String(firstBad)}`, { hint: 'mosaic trail verify' })
    return { schema: Number(db.pragma('user_version', { simple: true })), records, head }
  } catch (error) {
    if (error instanceof AppError) throw error
    throw new AppError('store-corrupt', `${path} is damaged (${messageOf(error)})`, { cause: error })
  } finally {
    db.close()
  }
}

/** The newest version of a store that this program knows. */
export const newestSchema = (): number => readMigrations().length
