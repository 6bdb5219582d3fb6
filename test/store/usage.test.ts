import Database from 'better-sqlite3'
import { expect, test } from 'vitest'
import type { UsageEntry } from '../../src/store/usage.ts'
import { APPLICATION_ID } from '../../src/store/header.ts'
import { migrate, readMigrations } from '../../src/store/migrations.ts'
import { dbPath, open, scratch } from './scratch.ts'

const entry = (more: Partial<UsageEntry> = {}): UsageEntry => ({
  run: 'r0123456789ab',
  instance: 'coder',
  role: 'coder',
  task: 't-1',
  family: 'sonnet',
  model: 'claude-sonnet-5-5',
  inputTokens: 100,
  outputTokens: 10,
  cacheReadTokens: 5,
  cacheWriteTokens: 1,
  complete: true,
  ...more,
})
const sums = (name: string | null, requests: number, more: object = {}): object => ({
  name,
  requests,
  incomplete: 0,
  inputTokens: 100 * requests,
  outputTokens: 10 * requests,
  cacheReadTokens: 5 * requests,
  cacheWriteTokens: requests,
  ...more,
})

test('usage is summed by role, instance, task, family and run, of this business and since a time', async () => {
  const root = scratch()
  const time = { nowMs: Date.parse('2026-01-31T09:00:00.000Z') }
  const clock = { now: () => time.nowMs, monotonic: () => 0 }
  const other = open(root, clock, 'other')
  other.writeNow(() => other.usage.append(entry({ inputTokens: 9999 })))
  other.close()
  const store = open(root, clock)
  store.writeNow(() => {
    store.usage.append(entry())
    store.usage.append(entry({ instance: 'coder-2', run: 'r00000000000b', task: null }))
    time.nowMs += 60_000
    store.usage.append(entry({ instance: 'pm', role: 'pm', run: 'r00000000000c', family: 'opus', complete: false }))
  })
  expect(await store.usage.sum('role')).toEqual([sums('coder', 2), sums('pm', 1, { incomplete: 1 })])
  expect(await store.usage.sum('instance')).toEqual([sums('coder', 1), sums('coder-2', 1), sums('pm', 1, { incomplete: 1 })])
  expect(await store.usage.sum('task')).toEqual([sums(null, 1), sums('t-1', 2, { incomplete: 1 })])
  expect(await store.usage.sum('family')).toEqual([sums('opus', 1, { incomplete: 1 }), sums('sonnet', 2)])
  expect(await store.usage.sum('run')).toHaveLength(3)
  expect(await store.usage.sum('role', time.nowMs)).toEqual([sums('pm', 1, { incomplete: 1 })])
  expect(await store.usage.sum('role', time.nowMs + 1)).toEqual([])
})

test('usage that was written stays as it is', async () => {
  const root = scratch()
  const store = open(root)
  store.writeNow(() => store.usage.append(entry()))
  store.close()
  const db = new Database(dbPath(root))
  db.pragma('recursive_triggers = ON')
  for (const sql of ['UPDATE usage SET output_tokens = 0', 'DELETE FROM usage', 'INSERT OR REPLACE INTO usage SELECT * FROM usage']) {
    expect(() => db.exec(sql)).toThrow('usage is append-only')
  }
  db.exec('INSERT INTO usage SELECT seq + 1, business, at, run, instance, role, task, family, model, 1, 1, 1, 1, 1 FROM usage')
  db.close()
  expect(await open(root).usage.sum('role')).toMatchObject([{ requests: 2 }])
})

test('more requests than one slice holds are summed whole, and others are served between slices', async () => {
  const store = open(scratch())
  store.writeNow(() => {
    for (let n = 0; n < 4500; n++) store.usage.append(entry({ task: n % 2 === 0 ? 't-1' : null }))
  })
  let turns = 0
  const count = (): void => void (turns++, setImmediate(count).unref())
  setImmediate(count).unref()
  expect((await store.usage.sum('task')).map(({ name, requests }) => [name, requests])).toEqual([
    [null, 2250],
    ['t-1', 2250],
  ])
  expect(turns).toBeGreaterThanOrEqual(2)
})

test('a store of before gets the table when it is opened', async () => {
  const root = scratch()
  const db = new Database(dbPath(root))
  db.pragma(`application_id = ${String(APPLICATION_ID)}`)
  migrate(db, readMigrations().slice(0, 1))
  db.close()
  const store = open(root)
  store.writeNow(() => store.usage.append(entry()))
  expect(await store.usage.sum('task')).toEqual([sums('t-1', 1)])
})
