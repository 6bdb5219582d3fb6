import * as fs from 'node:fs'
import type { Database } from 'better-sqlite3'

interface Migration {
  readonly version: number
  readonly sql: string
}

const FOLDER = new URL('./migrations/', import.meta.url)
const NAME = /^(\d{4})-[a-z0-9-]+\.sql$/

/** The numbered files beside this module (beside the bundle, once built), 1, 2, 3 … without a gap. */
export function readMigrations(): readonly Migration[] {
  const names = fs
    .readdirSync(FOLDER)
    .filter((name) => NAME.test(name))
    .sort()
  return names.map((name, index) => {
    const version = Number(NAME.exec(name)?.[1])
    if (version !== index + 1) throw new Error(`migration ${name} is not number ${String(index + 1)}`)
    return { version, sql: fs.readFileSync(new URL(name, FOLDER), 'utf8') }
  })
}

/** Brings a database to the newest version, each step in a transaction of its own. */
export function migrate(db: Database, migrations: readonly Migration[]): void {
  const current = Number(db.pragma('user_version', { simple: true }))
  for (const { version, sql } of migrations.slice(current)) {
    db.transaction(() => {
      db.exec(sql)
      db.pragma(`user_version = ${String(version)}`)
    }).immediate()
  }
}
