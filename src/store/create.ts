import * as fs from 'node:fs'
import { dirname } from 'node:path'
import type { StoreFiles } from './files.ts'
import { APPLICATION_ID } from './header.ts'
import { migrate, readMigrations } from './migrations.ts'
import { openDatabase } from './sqlite.ts'

const MODE = 0o600

function syncPath(path: string): void {
  const fd = fs.openSync(path, fs.constants.O_RDONLY)
  try {
    fs.fsyncSync(fd)
  } finally {
    fs.closeSync(fd)
  }
}

/** Makes a file under a temporary name, then gives it its own: whole or not at all, also after a crash. */
function makeAtomically(path: string, fill: (temporary: string) => void): void {
  const temporary = `${path}.new`
  for (const name of [temporary, `${temporary}-wal`, `${temporary}-shm`, `${temporary}-journal`]) fs.rmSync(name, { force: true })
  fs.closeSync(fs.openSync(temporary, 'wx', MODE))
  fill(temporary)
  syncPath(temporary)
  fs.renameSync(temporary, path)
  syncPath(dirname(path))
}

/** A database with all migrations and nothing in it, under its own name only once it is complete. */
export function createDatabase(files: StoreFiles): void {
  makeAtomically(files.db, (temporary) => {
    const db = openDatabase(temporary)
    try {
      db.pragma(`application_id = ${String(APPLICATION_ID)}`)
      migrate(db, readMigrations())
      db.pragma('journal_mode = WAL')
    } finally {
      db.close()
    }
  })
}

/** From now on a missing database is a lost one. */
export function ensureMarker(files: StoreFiles, text: string): void {
  if (fs.existsSync(files.marker)) return
  makeAtomically(files.marker, (temporary) => fs.writeFileSync(temporary, text))
}
