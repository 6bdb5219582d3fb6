import * as fs from 'node:fs'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { describe, expect, test } from 'vitest'
import { copyStore, describeSnapshot, detachSnapshot } from '../../src/store/snapshot.ts'
import { dbPath, HOST_ACTOR, nextRun, open, scratch, snapshot, starting } from './scratch.ts'

const record = (n: number) => ({ kind: 'x.test', subject: String(n), actor: HOST_ACTOR, body: { n } })
const refusalOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => 'done',
    (error: unknown) => (error instanceof Error && 'code' in error ? error.code : error),
  )

describe('a copy of a store', () => {
  test('made while its host writes, is a whole store of one moment, and leads to no process', async () => {
    const root = scratch()
    const store = open(root)
    const run = nextRun()
    store.writeNow(() => {
      store.sessions.insertStarting(starting(run))
      store.sessions.setSpawned(run, { monitor: { pid: 4, start: '5' }, init: { pid: 6, start: '7' }, bootId: 'b' })
      for (let n = 0; n < 3000; n++) store.trail.append(record(n))
    })
    const path = join(root, 'copy.db')
    const state = { over: false }
    const copying = store.backup(path).finally(() => (state.over = true))
    let written = 0
    while (!state.over) {
      await store.write(() => store.trail.append(record(written)))
      written += 1
    }
    await copying
    expect(written).toBeGreaterThan(0)
    detachSnapshot(path)
    expect(fs.readdirSync(root).filter((name) => name.startsWith('copy.db'))).toEqual(['copy.db'])
    expect(fs.statSync(path).mode & 0o777).toBe(0o600)
    const { records, head } = await describeSnapshot(path)
    expect(records).toBeGreaterThanOrEqual(3000)
    expect([...store.trail.list({ after: records - 1, limit: 1 })][0]?.hash).toBe(head)

    const other = scratch()
    fs.copyFileSync(path, dbPath(other))
    const restored = open(other)
    expect(restored.sessions.get(run)).toMatchObject({ state: 'starting', monitor: null, init: null, bootId: null })
    expect(store.sessions.get(run)).toMatchObject({ monitor: { pid: 4, start: '5' } })
    expect(await restored.trail.verify()).toMatchObject({ ok: true, records, head })
  })

  test('of a store that no host has open leaves it as it was; where there is none, says so', async () => {
    const root = scratch()
    const store = open(root)
    store.writeNow(() => store.trail.append(record(1)))
    store.close()
    const before = snapshot(root)
    const copy = join(scratch(), 'copy.db')
    await copyStore(root, copy)
    expect(snapshot(root)).toMatchObject(before)
    detachSnapshot(copy)
    expect(await describeSnapshot(copy)).toMatchObject({ records: 1, head: open(root).trail.head().head })
    expect(await refusalOf(copyStore(scratch(), join(scratch(), 'none.db')))).toBe('store-not-found')
  })

  test('is refused when its trail or its structure is broken', async () => {
    const root = scratch()
    const store = open(root)
    store.writeNow(() => {
      for (let n = 0; n < 2000; n++) store.trail.append(record(n))
    })
    const copy = join(scratch(), 'copy.db')
    await store.backup(copy)
    detachSnapshot(copy)
    const good = fs.readFileSync(copy)
    const db = new Database(copy)
    db.exec("DROP TRIGGER trail_no_update; UPDATE trail SET actor_name = 'other' WHERE seq = 3")
    db.close()
    expect(await refusalOf(describeSnapshot(copy))).toBe('trail-broken')
    fs.writeFileSync(copy, Buffer.concat([good.subarray(0, 8192), Buffer.alloc(16384, 0xa5), good.subarray(24576)]))
    expect(await refusalOf(describeSnapshot(copy))).toBe('store-corrupt')
    fs.writeFileSync(copy, good)
    expect(await refusalOf(describeSnapshot(copy))).toBe('done')
  })
})
