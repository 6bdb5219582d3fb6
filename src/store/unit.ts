import type { Database } from 'better-sqlite3'
import { AppError } from '../core/errors.ts'

export const isFull = (error: unknown): boolean => error instanceof AppError && error.code === 'disk-full'

/** What SQLite calls a write that failed with EDQUOT or EFBIG, and with any other error of the disk. https://sqlite.org/rescode.html */
const WRITE_FAILED: readonly string[] = ['SQLITE_IOERR_WRITE', 'SQLITE_IOERR_FSYNC', 'SQLITE_IOERR_SHMSIZE', 'SQLITE_IOERR_TRUNCATE']

function toStoreError(error: unknown, hasRoom: () => boolean): unknown {
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  const full = code === 'SQLITE_FULL' || (WRITE_FAILED.includes(code) && !hasRoom())
  return full ? new AppError('disk-full', 'the store has no room left on its disk', { cause: error }) : error
}

export interface UnitDeps {
  /** Told after each COMMIT that changed something. */
  readonly changed: () => void
  /** Can the disk still be written? Asked when it failed. */
  readonly hasRoom: () => boolean
  /** What an effect threw: what is durable is no refusal, and must not be done again. */
  readonly failed: (error: unknown) => void
}

/** One transaction at a time, with what is to be done once it is over. */
export interface Unit {
  readonly transact: <T>(fn: () => T) => T
  /** Runs fn as a part of the transaction that is open; what it throws is returned, if it changed nothing. */
  readonly part: (fn: () => void) => { readonly refused: unknown } | null
  readonly onCommit: (effect: () => void) => void
  readonly onRollback: (undo: () => void) => void
  readonly touch: () => void
}

/** Runs what follows a commit, which nothing can take back any more. */
export function runAfter(effect: () => void, failed: UnitDeps['failed']): void {
  try {
    effect()
  } catch (error) {
    failed(error)
  }
}

export function createUnit(db: Database, { changed, hasRoom, failed }: UnitDeps): Unit {
  const begin = db.prepare('BEGIN IMMEDIATE')
  const commit = db.prepare('COMMIT')
  const rollback = db.prepare('ROLLBACK')
  let effects: (() => void)[] = []
  let undos: (() => void)[] = []
  let changes = 0

  const take = (): { effects: (() => void)[]; undos: (() => void)[]; changes: number } => {
    const taken = { effects, undos, changes }
    effects = []
    undos = []
    changes = 0
    return taken
  }
  const undo = (): void => {
    // SQLite ends the transaction itself on some errors, a full disk among them
    if (db.inTransaction) rollback.run()
    for (const step of take().undos.reverse()) step()
  }
  const run = <T>(fn: () => T): T => {
    begin.run()
    try {
      const result = fn()
      commit.run()
      return result
    } catch (error) {
      undo()
      throw toStoreError(error, hasRoom)
    }
  }
  return {
    transact(fn) {
      const result = run(fn)
      const done = take()
      for (const effect of done.effects) runAfter(effect, failed)
      if (done.changes > 0) changed()
      return result
    },
    part(fn) {
      const before = { changes, effects: effects.length, undos: undos.length }
      try {
        fn()
        return null
      } catch (error) {
        if (changes !== before.changes || !db.inTransaction) throw error
        effects.length = before.effects
        undos.length = before.undos
        return { refused: error }
      }
    },
    onCommit: (effect) => void effects.push(effect),
    onRollback: (step) => void undos.push(step),
    touch() {
      changes++
    },
  }
}
