import { spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { build } from 'esbuild'
import { describe, expect, test } from 'vitest'
import { packageRoot } from '../../src/core/paths.ts'
import { connect } from '../../src/store/connect.ts'
import { APPLICATION_ID } from '../../src/store/header.ts'
import { migrate, readMigrations } from '../../src/store/migrations.ts'
import { dbPath, HOST_ACTOR, nextRun, open, scratch, starting } from './scratch.ts'

const migrations = readMigrations()
const schemaOf = (db: Database.Database): unknown => db.prepare('SELECT type, name, sql FROM sqlite_schema ORDER BY type, name').all()

/** A data root whose store a program of that version has made. */
function madeBy(version: number): string {
  const root = scratch()
  const db = new Database(dbPath(root))
  db.pragma(`application_id = ${String(APPLICATION_ID)}`)
  migrate(db, migrations.slice(0, version))
  db.pragma('journal_mode = WAL')
  db.close()
  fs.writeFileSync(`${dbPath(root)}.created`, 'once\n')
  return root
}

const FIRST = { at: '2026-01-01T00:00:00.000Z', kind: 'x.test', subject: null, actor_kind: 'host', actor_name: 'host', actor_run: null, body: '{"n":1}' }
/** Of FIRST as record 1, by the definition in docs/protocol.md. */
const FIRST_HASH = 'dfebc745ff01686fd5605604da21a2fed79ac1e7cf8c504056b63129b366e975'

/** Rows as version 1 wrote them, in plain SQL: what the code of today writes is not asked. */
function fillVersion1(root: string): void {
  const db = new Database(dbPath(root))
  db.prepare('INSERT INTO trail (seq, at, kind, subject, actor_kind, actor_name, actor_run, body, hash) VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?)').run(
    FIRST.at,
    FIRST.kind,
    FIRST.subject,
    FIRST.actor_kind,
    FIRST.actor_name,
    FIRST.actor_run,
    FIRST.body,
    FIRST_HASH,
  )
  db.exec(`
    INSERT INTO sessions (run, business, instance, role, harness, model, family, network, state, launched_by, launched_by_kind, run_dir, env, env_root, manifest, started_at, ended_at, reason)
      VALUES ('r00000000aaaa', 'acme', 'coder', 'coder', 'script', 'm', 'opus', 'none', 'ended', 'ada', 'founder', '/d/r', 'coder', '/d/e', '/d/m', '${FIRST.at}', '${FIRST.at}', 'stopped');
    INSERT INTO sessions (run, business, instance, role, harness, model, family, network, state, launched_by, launched_by_kind, run_dir, env, env_root, manifest, started_at)
      VALUES ('r00000000bbbb', 'acme', 'pm', 'pm', 'script', 'm', 'opus', 'none', 'running', 'ada', 'founder', '/d/r', 'pm', '/d/e', '/d/m', '${FIRST.at}');
    INSERT INTO tasks (business, id, title, body, state, created_by, created_by_kind, created_at) VALUES ('acme', 'hello', 'Say hello', '', 'open', 'ada', 'founder', '${FIRST.at}');
    INSERT INTO messages (business, at, from_kind, from_role, from_instance, recipient, class, body, failed, state)
      VALUES ('acme', '${FIRST.at}', 'founder', 'founder', 'founder', 'coder', 'NOTE', 'hello', 0, 'accepted');
  `)
  db.close()
}

describe('a store of an earlier version', () => {
  test.each(migrations.map(({ version }) => version))('%i is brought to the newest, with everything in it, and is then like a new one', async (version) => {
    const root = madeBy(version)
    fillVersion1(root)
    const store = open(root)
    expect(store.trail.head()).toEqual({ records: 1, head: FIRST_HASH })
    expect(store.sessions.get('r00000000aaaa')).toMatchObject({ instance: 'coder', reason: 'stopped' })
    expect(store.tasks.get('hello')).toMatchObject({ title: 'Say hello' })
    // through the indexes that were made over what was there
    expect([store.sessions.liveOf('pm')?.run, store.sessions.liveOf('coder'), store.sessions.lastOf('coder', null)?.run]).toEqual([
      'r00000000bbbb',
      null,
      'r00000000aaaa',
    ])
    const [[task], [message], [record]] = [store.tasks.list({ state: 'open' }), store.messages.waiting('coder', 1), store.trail.list({ kind: FIRST.kind })]
    expect([task?.id, message?.body, record?.hash]).toEqual(['hello', 'hello', FIRST_HASH])
    store.writeNow(() => {
      store.sessions.insertStarting(starting(nextRun()))
      store.trail.append({ kind: 'x.test', subject: null, actor: HOST_ACTOR, body: {} })
    })
    expect(await store.trail.verify()).toMatchObject({ ok: true, records: 2 })
    store.close()
    const fresh = scratch()
    open(fresh).close()
    const [old, made] = [new Database(dbPath(root)), new Database(dbPath(fresh))]
    expect(schemaOf(old)).toEqual(schemaOf(made))
    expect(old.pragma('user_version', { simple: true })).toBe(migrations.length)
    old.close()
    made.close()
  })

  test('stays whole when its migration fails: no step is half done, and the next start does it', () => {
    const root = madeBy(migrations.length)
    const next = {
      version: migrations.length + 1,
      sql: 'CREATE TABLE extra (a TEXT) STRICT; ALTER TABLE tasks ADD COLUMN extra TEXT; SELECT no_such_function();',
    }
    const db = connect(dbPath(root))
    const before = schemaOf(db)
    expect(() => migrate(db, [...migrations, next])).toThrow('no_such_function')
    expect([schemaOf(db), db.pragma('user_version', { simple: true })]).toEqual([before, migrations.length])
    migrate(db, [...migrations, { ...next, sql: next.sql.replace(/SELECT.*/, '') }])
    expect(db.pragma('user_version', { simple: true })).toBe(next.version)
    db.close()
  })

  test('stays whole when the process is killed in the middle of it', async () => {
    const root = madeBy(1)
    fillVersion1(root)
    const program = join(root, 'killed.mjs')
    const entry = join(packageRoot(), 'fixtures/store/killed-migration.ts')
    // better-sqlite3 loads an addon of its own, so it stays where it is
    const alias = { 'better-sqlite3': join(packageRoot(), 'node_modules/better-sqlite3/lib/index.js') }
    await build({ entryPoints: [entry], outfile: program, bundle: true, platform: 'node', format: 'esm', alias, external: [alias['better-sqlite3']] })
    const killed = spawnSync(process.execPath, [program, dbPath(root)], { encoding: 'utf8' })
    expect([killed.signal, killed.stdout]).toEqual(['SIGKILL', 'migrating\n'])
    fs.rmSync(program)
    const store = open(root)
    expect(store.trail.head()).toEqual({ records: 1, head: FIRST_HASH })
    store.close()
    const db = new Database(dbPath(root), { readonly: true })
    expect(db.prepare("SELECT name FROM sqlite_schema WHERE name = 'extra'").all()).toEqual([])
    db.close()
  })
})
