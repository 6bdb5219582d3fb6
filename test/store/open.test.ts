import * as fs from 'node:fs'
import Database from 'better-sqlite3'
import { describe, expect, test } from 'vitest'
import { AppError } from '../../src/core/errors.ts'
import { connect } from '../../src/store/connect.ts'
import { readMigrations } from '../../src/store/migrations.ts'
import { dbPath, HOST_ACTOR, open, scratch, snapshot } from './scratch.ts'

const record = (n: number) => ({ kind: 'x.test', subject: String(n), actor: HOST_ACTOR, body: { n } })

/** A data root with a store of some records, closed in order. */
function filled(records = 20): string {
  const root = scratch()
  const store = open(root)
  store.writeNow(() => {
    for (let n = 1; n <= records; n++) store.trail.append(record(n))
  })
  store.close()
  return root
}

function refusal(root: string): AppError {
  try {
    open(root)
  } catch (error) {
    if (error instanceof AppError) return error
    throw error
  }
  throw new Error('it was to refuse')
}

/** Opening must refuse with this code, name the files, and leave every byte as it was. */
function refuses(root: string, code: string): void {
  const before = snapshot(root)
  const error = refusal(root)
  expect(error.code).toBe(code)
  expect(error.message).toMatch(/ is unreadable.*: move the files aside: .*mosaic\.db/)
  expect(error.message).toContain(dbPath(root))
  expect(snapshot(root)).toEqual(before)
}

/** The files of a store whose process died: with a write-ahead log that was never checkpointed. */
function crashed(records = 20): string {
  const from = filled(records)
  const store = open(from)
  store.writeNow(() => store.trail.append(record(0)))
  const root = scratch()
  for (const name of fs.readdirSync(from)) fs.copyFileSync(`${from}/${name}`, `${root}/${name}`)
  store.close()
  expect(fs.statSync(`${dbPath(root)}-wal`).size).toBeGreaterThan(0)
  return root
}

const edit = (root: string, change: (db: Database.Database) => void): void => {
  const db = new Database(dbPath(root))
  change(db)
  db.close()
}

describe('opening', () => {
  test('a new store is private, durable, marked, and opens again', () => {
    const root = scratch()
    const store = open(root)
    for (const name of fs.readdirSync(root)) expect([name, fs.statSync(`${root}/${name}`).mode & 0o777]).toEqual([name, 0o600])
    expect(fs.readdirSync(root)).toEqual(expect.arrayContaining(['mosaic.db', 'mosaic.db-wal', 'mosaic.db-shm', 'mosaic.db.created']))
    store.close()
    store.close()
    expect(open(root).trail.head()).toEqual({ records: 0, head: '0'.repeat(64) })
  })

  test('what was written is there after a close and after a crash', async () => {
    expect(open(filled()).trail.head().records).toBe(20)
    const store = open(crashed())
    expect(store.trail.head().records).toBe(21)
    expect((await store.trail.verify()).ok).toBe(true)
  })

  test('a creation that was cut off begins anew', () => {
    const root = scratch()
    fs.writeFileSync(`${dbPath(root)}.new`, 'half')
    fs.writeFileSync(dbPath(root), '')
    expect(open(root).trail.head().records).toBe(0)
  })

  test('a store without its marker gets one: the crash was between the two', () => {
    const root = filled()
    fs.rmSync(`${dbPath(root)}.created`)
    open(root).close()
    expect(fs.existsSync(`${dbPath(root)}.created`)).toBe(true)
  })
})

describe('refusing', () => {
  test('what is no database', () => {
    const root = filled()
    const kept = fs.readFileSync(dbPath(root))
    fs.writeFileSync(dbPath(root), 'this is no database\n'.repeat(400))
    refuses(root, 'store-unreadable')
    fs.writeFileSync(dbPath(root), kept)
    expect(open(root).trail.head().records).toBe(20)
  })

  test("another program's database", () => {
    const root = filled()
    edit(root, (db) => db.pragma('application_id = 7'))
    refuses(root, 'store-unreadable')
  })

  test.each(['a link', 'a directory', 'a second name', 'no right to read'])('%s instead of a private file', (what) => {
    const root = filled()
    const path = dbPath(root)
    const aside = `${root}/aside`
    if (what === 'a second name') fs.linkSync(path, aside)
    else if (what === 'no right to read') fs.chmodSync(path, 0)
    else fs.renameSync(path, aside)
    if (what === 'a link') fs.symlinkSync(aside, path)
    if (what === 'a directory') fs.mkdirSync(path)
    expect(refusal(root).code).toBe('store-unreadable')
    fs.rmSync(what === 'a second name' ? aside : path, { recursive: true, force: true })
    if (what === 'no right to read') return
    if (what !== 'a second name') fs.renameSync(aside, path)
    expect(open(root).trail.head().records).toBe(20)
  })

  test('a store that is lost: the marker alone, or an orphan -wal', () => {
    const root = filled()
    fs.rmSync(dbPath(root))
    refuses(root, 'store-lost')
    fs.writeFileSync(dbPath(root), '')
    refuses(root, 'store-lost')
    const other = scratch()
    fs.writeFileSync(`${dbPath(other)}-wal`, 'left')
    refuses(other, 'store-lost')
    fs.rmSync(`${dbPath(other)}-wal`)
    open(other)
  })

  test('a newer version, in the file and in the write-ahead log alone', () => {
    const root = filled()
    edit(root, (db) => db.pragma('user_version = 99'))
    refuses(root, 'store-newer')
    edit(root, (db) => db.pragma(`user_version = ${String(readMigrations().length)}`))
    open(root).close()

    const from = filled()
    const db = new Database(dbPath(from))
    db.pragma('user_version = 99')
    const copy = scratch()
    for (const name of fs.readdirSync(from)) fs.copyFileSync(`${from}/${name}`, `${copy}/${name}`)
    db.close()
    expect(fs.readFileSync(dbPath(copy)).readUInt32BE(60)).toBe(readMigrations().length)
    refuses(copy, 'store-newer')
  })

  test('a file that is cut off, or scrambled inside', () => {
    const root = filled()
    const kept = fs.readFileSync(dbPath(root))
    fs.truncateSync(dbPath(root), kept.length - 4096)
    refuses(root, 'store-corrupt')
    const scrambled = Buffer.from(kept)
    scrambled.fill(0xa5, 4096 * 2, 4096 * 5)
    fs.writeFileSync(dbPath(root), scrambled)
    refuses(root, 'store-corrupt')
    fs.writeFileSync(dbPath(root), kept)
    open(root)
  })

  test('a scrambled file with a write-ahead log beside it keeps every byte of both', () => {
    const root = crashed()
    const fd = fs.openSync(dbPath(root), 'r+')
    fs.writeSync(fd, Buffer.alloc(4096 * 3, 0xa5), 0, 4096 * 3, 4096 * 4)
    fs.closeSync(fd)
    refuses(root, 'store-corrupt')
  })

  test('a trail whose chain is broken, in its last thousand records', () => {
    const root = filled(50)
    edit(root, (db) => db.exec('DROP TRIGGER trail_no_update; UPDATE trail SET body = \'{"n":1000}\' WHERE seq = 30'))
    refuses(root, 'trail-broken')
    expect(refusal(root).message).toContain('record 30')
    edit(root, (db) => db.exec('UPDATE trail SET body = \'{"n":30}\' WHERE seq = 30'))
    open(root)
  })
})

test('at every open: synchronous=FULL, WAL, foreign keys, recursive triggers, no trusted schema', () => {
  const root = filled()
  const seen: unknown[] = []
  for (const open of [new Database(dbPath(root)), connect(dbPath(root))]) {
    const value = (name: string): unknown => open.pragma(name, { simple: true })
    seen.push(['journal_mode', 'synchronous', 'foreign_keys', 'recursive_triggers', 'trusted_schema'].map(value))
    open.close()
  }
  expect(seen).toEqual([expect.not.arrayContaining([2]), ['wal', 2, 1, 1, 0]])
})
