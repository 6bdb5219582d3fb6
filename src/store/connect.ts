import type Database from 'better-sqlite3'
import { migrate, readMigrations } from './migrations.ts'
import { openDatabase } from './sqlite.ts'

/** At every open: better-sqlite3 opens WAL files at synchronous=NORMAL, and the rest is per connection too. */
function applyPragmas(db: Database.Database): void {
  db.pragma('busy_timeout = 5000')
  db.pragma('journal_mode = WAL')
  db.pragma('synchronous = FULL')
  db.pragma('foreign_keys = ON')
  // without it INSERT OR REPLACE deletes rows and no trigger sees it
  db.pragma('recursive_triggers = ON')
  db.pragma('trusted_schema = OFF')
}

/** The one writing connection to a database that is there, brought to the newest version. */
export function connect(path: string): Database.Database {
  const db = openDatabase(path, { fileMustExist: true })
  try {
    applyPragmas(db)
    migrate(db, readMigrations())
    return db
  } catch (error) {
    db.close()
    throw error
  }
}
