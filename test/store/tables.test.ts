import * as fs from 'node:fs'
import { fork } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import type { Database } from 'better-sqlite3'
import { build } from 'esbuild'
import { describe, expect, test } from 'vitest'
import { connect } from '../../src/store/connect.ts'
import { canonicalRow } from '../../src/store/chain.ts'
import { createFeed } from '../../src/store/feed.ts'
import { createTrail } from '../../src/store/trail.ts'
import { silentLog } from '../../src/core/log.ts'
import { createTransactions } from '../../src/store/transactions.ts'
import { dbPath, HOST_ACTOR, nextRun, open, scratch, starting } from './scratch.ts'

const entry = (subject: string, body: Record<string, unknown> = {}) => ({ kind: 'x.test', subject, actor: HOST_ACTOR, body })

/** A store's database with a record and an end in it, and nothing else open. */
function withRecords(use: (db: Database) => void): void {
  const root = scratch()
  const store = open(root)
  store.writeNow(() => {
    store.trail.append(entry('one'))
    store.launchLog.appendEnd({ run: 'r000000000001', instance: 'coder', fields: { reason: 'stopped' } })
  })
  store.close()
  const db = connect(dbPath(root))
  try {
    use(db)
  } finally {
    db.close()
  }
}

describe('append-only tables', () => {
  test.each(['trail', 'launch_log'])('%s refuses UPDATE, DELETE and INSERT OR REPLACE, and takes INSERT', (table) => {
    withRecords((db) => {
      const before = db.prepare(`SELECT * FROM ${table}`).all()
      const columns = (db.pragma(`table_info(${table})`) as { name: string }[]).map(({ name }) => name).join(', ')
      for (const sql of [
        `UPDATE ${table} SET at = 'never'`,
        `DELETE FROM ${table}`,
        `INSERT OR REPLACE INTO ${table} (${columns}) SELECT ${columns} FROM ${table}`,
        `REPLACE INTO ${table} (${columns}) SELECT ${columns} FROM ${table} WHERE seq = 1`,
        `UPDATE OR REPLACE ${table} SET seq = 2`,
      ]) {
        expect(() => db.exec(sql), sql).toThrow('append-only')
      }
      expect(db.prepare(`SELECT * FROM ${table}`).all()).toEqual(before)
      db.exec(`INSERT INTO ${table} (${columns}) SELECT ${columns.replace('seq', '7').replace(/\brun\b/, "'r00000000000f'")} FROM ${table}`)
      expect(db.prepare(`SELECT count(*) AS n FROM ${table}`).get()).toEqual({ n: 2 })
    })
  })

  test('a run has one end, whoever writes it', () => {
    withRecords((db) => {
      expect(() => db.exec("INSERT INTO launch_log (at, event, run, instance, fields) VALUES ('', 'end', 'r000000000001', 'coder', '{}')")).toThrow('UNIQUE')
    })
    const store = open(scratch())
    const end = (run: string) => store.writeNow(() => store.launchLog.appendEnd({ run, instance: 'coder', fields: { reason: 'stopped' } }))
    expect([end('r1'), end('r1'), end('r2')]).toEqual([true, false, true])
    expect([...store.launchLog.list({ event: 'end' })].map(({ run, reason }) => [run, reason])).toEqual([
      ['r1', 'stopped'],
      ['r2', 'stopped'],
    ])
  })
})

describe('the trail', () => {
  test('each hash is SHA-256 of the one before, in hex, and the canonical row', async () => {
    const store = open(scratch())
    const bodies = [{}, { text: 'ünïcode\n\u0000"\\' }, { nested: { list: [1, 2.5, null, true] } }, { ['__proto__']: 1, 10: 'b', 2: 'a' }]
    const rows = store.writeNow(() => bodies.map((body, n) => store.trail.append(entry(`s"${String(n)}\n`, body))))
    let previous = '0'.repeat(64)
    for (const row of store.trail.list()) {
      const canonical = JSON.stringify([row.seq, row.at, row.kind, row.subject, row.actor.kind, row.actor.name, row.actor.run, row.body])
      previous = createHash('sha256').update(previous).update(canonical, 'utf8').digest('hex')
      expect(row.hash).toBe(previous)
    }
    expect([...store.trail.list()]).toEqual(rows)
    expect(store.trail.head()).toEqual({ records: 4, head: previous })
    expect(await store.trail.verify()).toEqual({ ok: true, firstBad: null, records: 4, head: previous })
    expect(await store.trail.verify({ from: 2 })).toMatchObject({ ok: true, records: 4 })
    const plain = { seq: 1, at: 'T', kind: 'k', subject: null, actor_kind: 'host', actor_name: 'host', actor_run: null, body: '{"a":1}' }
    store.writeNow(() => store.trail.append(entry('a\ud800b\0c', { text: '\udfff' })))
    expect([...store.trail.list({ after: 4 })][0]).toMatchObject({ subject: 'a\ufffdb\0c', body: { text: '\udfff' } })
    expect((await store.trail.verify()).ok).toBe(true)
    expect(canonicalRow(plain)).toBe('[1,"T","k",null,"host","host",null,{"a":1}]')
  })

  test.each([
    ['a changed body', 'UPDATE trail SET body = \'{"n":7}\' WHERE seq = 5', 5],
    ['a changed time', "UPDATE trail SET at = '2000-01-01T00:00:00.000Z' WHERE seq = 5", 5],
    ['a changed subject', "UPDATE trail SET subject = 'other' WHERE seq = 5", 5],
    ['a removed record', 'DELETE FROM trail WHERE seq = 5', 6],
    ['two that changed places', 'UPDATE trail SET seq = -1 WHERE seq = 5; UPDATE trail SET seq = 5 WHERE seq = 6; UPDATE trail SET seq = 6 WHERE seq = -1', 5],
    ['a changed hash', "UPDATE trail SET hash = replace(hash, 'a', 'b') || '' WHERE seq = 5; UPDATE trail SET hash = 'f' || substr(hash, 2) WHERE seq = 5", 5],
    ['a body that is no JSON', "UPDATE trail SET body = '{' WHERE seq = 5", 5],
    ['nothing', '', null],
  ])('verify finds %s', async (_what, sql, firstBad) => {
    const root = scratch()
    const writer = open(root)
    writer.writeNow(() => {
      for (let n = 1; n <= 10; n++) writer.trail.append(entry(`s${String(n)}`, { n }))
    })
    const db = connect(dbPath(root))
    db.exec(`DROP TRIGGER trail_no_update; DROP TRIGGER trail_no_delete; ${sql}`)
    db.close()
    const found = await writer.trail.verify()
    expect([found.ok, found.firstBad]).toEqual([firstBad === null, firstBad])
    expect(found.records).toBe(firstBad === null ? 10 : 4)
  })

  test('a transaction that is undone leaves no gap in the chain', async () => {
    const store = open(scratch())
    await expect(
      store.write(() => {
        store.trail.append(entry('lost'))
        throw new Error('no')
      }),
    ).rejects.toThrow('no')
    await store.write(() => store.trail.append(entry('kept')))
    expect([...store.trail.list()].map(({ seq, subject }) => [seq, subject])).toEqual([[1, 'kept']])
    expect((await store.trail.verify()).ok).toBe(true)
  })

  test('pages by subject, kind and actor follow a cursor', () => {
    const store = open(scratch())
    store.writeNow(() => {
      for (let n = 1; n <= 30; n++)
        store.trail.append({
          ...entry(n % 3 === 0 ? 'fizz' : 'other'),
          kind: n % 2 === 0 ? 'x.even' : 'x.odd',
          actor: n % 5 === 0 ? { kind: 'session', name: 'pm', run: 'r5' } : HOST_ACTOR,
        })
    })
    const seqs = (filter: Parameters<typeof store.trail.list>[0]) => [...store.trail.list(filter)].map(({ seq }) => seq)
    expect(seqs({ subject: 'fizz', limit: 3 })).toEqual([3, 6, 9])
    expect(seqs({ subject: 'fizz', after: 9, limit: 2 })).toEqual([12, 15])
    expect(seqs({ subject: 'fizz', kind: 'x.even' })).toEqual([6, 12, 18, 24, 30])
    expect(seqs({ of: 'r5', after: 10 })).toEqual([15, 20, 25, 30])
    expect(seqs({ after: 28 })).toEqual([29, 30])
    expect(seqs({ after: 3, through: 6 })).toEqual([4, 5, 6])
    expect(seqs({ of: 'r5', kind: 'x.even' })).toEqual([10, 20, 30])
    store.writeNow(() => store.trail.append({ ...entry('r5'), kind: 'session.ended' }))
    expect([seqs({ reserved: true }), seqs({ of: 'r5', after: 25 })]).toEqual([[31], [30, 31]])
    const { head } = store.trail.head()
    expect([store.trail.holds(head, 0, 30), store.trail.holds(head, 0, 31), store.trail.holds(head, 31, 40)]).toEqual([false, true, false])
  })
})

describe('group commit', () => {
  test('what one turn of the loop brings is one transaction, and a refusal in it is its own', async () => {
    const root = scratch()
    const store = open(root)
    let commits = 0
    store.onChange(() => commits++)
    const results = await Promise.allSettled(
      [1, 2, 3, 4].map((n) =>
        store.write(() => {
          if (n === 2) throw new Error('refused')
          return store.trail.append(entry(String(n))).seq
        }),
      ),
    )
    expect(results.map((result) => (result.status === 'fulfilled' ? result.value : 'refused'))).toEqual([1, 'refused', 2, 3])
    expect(commits).toBe(1)
  })

  test('one that fails after a change takes nobody with it, and its effects are taken back', async () => {
    const store = open(scratch())
    const effects: string[] = []
    const results = await Promise.allSettled(
      [1, 2, 3].map((n) =>
        store.write(() => {
          store.trail.append(entry(String(n)))
          store.onCommit(() => effects.push(`commit ${String(n)}`))
          store.onRollback(() => effects.push(`undo ${String(n)}`))
          if (n === 2) throw new Error('late')
          return n
        }),
      ),
    )
    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
    expect([...store.trail.list()].map(({ subject }) => subject)).toEqual(['1', '3'])
    expect(effects).toEqual(['undo 2', 'undo 1', 'commit 1', 'undo 2', 'commit 3'])
    expect((await store.trail.verify()).ok).toBe(true)
  })

  test('writeNow commits what is queued first', async () => {
    const store = open(scratch())
    const queued = store.write(() => store.trail.append(entry('first')).seq)
    expect(store.writeNow(() => store.trail.append(entry('second')).seq)).toBe(2)
    expect(await queued).toBe(1)
    store.close()
    await expect(store.write(() => 1)).rejects.toThrow('closed')
  })

  test('a full disk is disk-full and changes nothing; the reserve is freed for what must be written', async () => {
    const root = scratch()
    open(root).close()
    const db = connect(dbPath(root))
    // SQLite's own limit on the size stands in for the disk's
    const limit = (pages: number): unknown => db.pragma(`max_page_count = ${String(pages)}`)
    let reserve = 1
    const tx = createTransactions(db, {
      freeReserve: () => {
        limit(1000)
        return reserve-- > 0
      },
      hasRoom: () => true,
      log: silentLog,
    })
    const trail = createTrail({ db, tx, feed: createFeed(tx), business: 'acme', stamp: () => '' })
    const append = (): number[] => [1, 2, 3].map((n) => trail.append(entry(String(n), { text: 'x'.repeat(100_000) })).seq)
    limit(60)
    const both = await Promise.allSettled([tx.write(append), tx.write(append)])
    expect(both).toMatchObject([{ reason: { code: 'disk-full' } }, { reason: { code: 'disk-full' } }])
    expect([trail.head().records, reserve]).toEqual([0, 1])
    // the reserve is for ends: a refused launch does not get it
    expect(() => tx.writeNow(append)).toThrow('no room')
    expect([trail.head().records, reserve]).toEqual([0, 1])
    expect(tx.writeNow(append, { reserve: true })).toEqual([1, 2, 3])
    expect([trail.head().records, reserve]).toEqual([3, 0])
    limit(80)
    expect(() => tx.writeNow(append, { reserve: true })).toThrow('no room')
    db.close()
  })
})

describe('sessions', () => {
  test('a run goes through its states and no other way', () => {
    const store = open(scratch())
    const [run, other] = [nextRun(), nextRun()]
    store.writeNow(() => {
      store.sessions.insertStarting(starting(run))
      expect(store.sessions.setStopping(run)).toBe(false)
      store.sessions.setEnv(run, { env: 'coder.x', envRoot: '/d/envs/acme/coder.x', envOutcome: 'created', envIdentity: '1:2' })
      store.sessions.setPlan(run, 'hash')
      store.sessions.setSpawned(run, { monitor: { pid: 10, start: '100' }, init: { pid: 11, start: '101' }, bootId: 'b' })
      store.sessions.setRunner(run, { pid: 12, start: '102' })
      store.sessions.setRunning(run)
      expect(() => store.sessions.setRunning(run)).toThrow()
      expect(store.sessions.remove(run)).toBe(false)
    })
    expect(store.sessions.get(run)).toMatchObject({
      state: 'running',
      live: true,
      pid: 10,
      runnerPid: 12,
      init: { pid: 11, start: '101' },
      env: 'coder.x',
      envOutcome: 'created',
      planHash: 'hash',
      bootId: 'b',
      claimedAt: null,
    })
    expect(store.sessions.liveOf('coder')?.run).toBe(run)
    expect(store.sessions.holderOf('coder')).toBeNull()
    const end = { reason: 'killed', exitCode: null, signal: 'SIGKILL' } as const
    expect(store.writeNow(() => [store.sessions.setStopping(run), store.sessions.setEnded(run, end), store.sessions.setEnded(run, end)])).toEqual([
      true,
      true,
      false,
    ])
    expect(store.sessions.get(run)).toMatchObject({ state: 'ended', live: false, reason: 'killed', exitCode: null, signal: 'SIGKILL' })
    store.writeNow(() => {
      store.sessions.insertStarting(starting(other, { task: 't-1' }))
      expect(store.sessions.live().map((row) => row.run)).toEqual([other])
      expect(store.sessions.remove(other)).toBe(true)
    })
    expect([store.sessions.lastOf('coder')?.run, store.sessions.lastOf('coder', null)?.run, store.sessions.lastOf('coder', 't-1')]).toEqual([run, run, null])
    expect(store.sessions.findByPrefix(run.slice(0, 12)).map((row) => row.run)).toContain(run)
    expect(store.sessions.findByPrefix('rffff')).toEqual([])
  })

  test('another business in the same data root is not seen', () => {
    const root = scratch()
    const first = open(root)
    const run = nextRun()
    first.writeNow(() => first.sessions.insertStarting(starting(run)))
    first.close()
    const second = open(root, undefined, 'other')
    expect([second.sessions.liveOf('coder'), [...second.sessions.listAll()], second.sessions.live().length]).toEqual([null, [], 1])
  })
})

/** Builds a program that lies beside this test and finds its modules and migrations; its path. */
async function program(name: string): Promise<string> {
  const folder = scratch()
  const at = (path: string): string => new URL(path, import.meta.url).pathname
  fs.symlinkSync(at('../../node_modules'), `${folder}/node_modules`)
  fs.cpSync(at('../../src/store/migrations'), `${folder}/migrations`, { recursive: true })
  const outfile = `${folder}/${name}.mjs`
  await build({ entryPoints: [at(`./${name}.ts`)], outfile, bundle: true, platform: 'node', format: 'esm', packages: 'external' })
  return outfile
}

test('a writer that is killed in the midst of writing loses nothing it was told is durable', async () => {
  const root = scratch()
  const child = fork(await program('writer'), [root], { stdio: ['ignore', 'pipe', 'inherit', 'ipc'] })
  const exited = once(child, 'exit')
  let last = 0
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    const numbers = text
      .split('\n')
      .filter((line) => line !== '')
      .map(Number)
    last = Math.max(last, ...numbers)
    if (last >= 300) child.kill('SIGKILL')
  })
  const [, signal] = (await exited) as [number | null, string | null]
  expect(signal).toBe('SIGKILL')
  const store = open(root)
  expect(store.trail.head().records).toBeGreaterThanOrEqual(last)
  expect(await store.trail.verify()).toMatchObject({ ok: true })
  expect(store.writeNow(() => store.trail.append(entry('after')).seq)).toBe(store.trail.head().records)
})
