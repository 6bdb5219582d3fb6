import type { Database } from 'better-sqlite3'
import { expect, test, vi } from 'vitest'
import { systemClock } from '../../src/core/clock.ts'
import { silentLog } from '../../src/core/log.ts'
import { connect } from '../../src/store/connect.ts'
import { createStamp, type TableContext } from '../../src/store/database.ts'
import { createFeed } from '../../src/store/feed.ts'
import { createLaunchLog } from '../../src/store/launch-log.ts'
import { createMessages } from '../../src/store/messages.ts'
import { createPushes } from '../../src/store/pushes.ts'
import { createReviews } from '../../src/store/reviews.ts'
import { createSessions } from '../../src/store/sessions.ts'
import { createTasks } from '../../src/store/tasks.ts'
import { createTrail } from '../../src/store/trail.ts'
import { createTransactions } from '../../src/store/transactions.ts'
import { dbPath, open, scratch } from './scratch.ts'

/** A connection to a new store that keeps the text of every statement that is prepared. */
function watched(): { readonly db: Database; readonly texts: ReadonlySet<string> } {
  const root = scratch()
  open(root).close()
  const db = connect(dbPath(root))
  const texts = new Set<string>()
  const prepare = db.prepare.bind(db)
  db.prepare = (text: string) => {
    texts.add(text)
    return prepare(text)
  }
  return { db, texts }
}

function contextOf(db: Database): TableContext {
  const tx = createTransactions(db, { freeReserve: () => false, hasRoom: () => true, log: silentLog })
  return { db, tx, feed: createFeed(tx), business: 'acme', stamp: createStamp(systemClock) }
}

/** Every query that the tables know, those included that are put together as they are asked. */
function prepareAll(db: Database): void {
  const context = contextOf(db)
  const [tasks, trail, launchLog, reviews] = [createTasks(context), createTrail(context), createLaunchLog(context), createReviews(context)]
  createSessions(context)
  createMessages(context)
  createPushes(context)
  const read = (rows: Iterable<unknown>): void => void Array.from(rows)
  for (const state of [undefined, 'open', 'closed'] as const) for (const of of [undefined, 'coder']) read(tasks.list({ state, of }))
  for (const kind of [undefined, 'x.a', 'message.sent', 'message.answered'])
    for (const subject of [undefined, 't-1'])
      for (const of of [undefined, 'r1'])
        for (const reserved of [false, true]) read(trail.list({ kind, subject, of, reserved, through: reserved ? 9 : undefined }))
  for (const event of [undefined, 'end'] as const) for (const code of [undefined, 'disk-full']) read(launchLog.list({ event, code }))
  db.exec(
    "INSERT INTO tasks (seq, business, id, title, body, state, created_by, created_by_kind, created_at) VALUES (1, 'acme', 't-1', '', '', 'open', 'ada', 'founder', '')",
  )
  db.exec("INSERT INTO pushes (task_seq, at, project, ref, commit_oid, run, instance) VALUES (1, '', '', '', '', '', '')")
  db.exec("INSERT INTO review_requests (push_seq, at, requested_by) VALUES (1, '', '')")
  for (const task of [undefined, 't-1'])
    for (const state of [undefined, 'open'] as const) for (const of of [undefined, 'coder']) for (const rows of reviews.list({ task, state, of })) read(rows)
}

/** What the planner makes of a query whose parameters it knows nothing of. */
function planOf(db: Database, text: string): string[] {
  const named = Object.fromEntries([...text.matchAll(/(?<=@)\w+/g)].map(([name]) => [name, null] as const))
  const unnamed: readonly null[] = [...text.matchAll(/\?/g)].map(() => null)
  return (db.prepare(`EXPLAIN QUERY PLAN ${text}`).all(...(text.includes('@') ? [named] : unnamed)) as { detail: string }[]).map(({ detail }) => detail)
}

/** A table that is read from its beginning to its end, or rows that are sorted before the first is given. */
const isUnbounded = (step: string): boolean => /^SCAN (?!up$|down$|\(subquery|CONSTANT ROW)|USE TEMP B-TREE/.test(step)

/** By what each begins, and why all of what it reads must be read. */
const WHOLE: readonly (readonly [text: RegExp, why: string])[] = [
  [/INDEXED BY sessions_live/, 'live runs are few, and only they stand in the index'],
  [/^SELECT t\.id AS task, p\.project, .*GROUP BY t\.seq/, 'recovery goes by all approvals, once at the start'],
  [/^SELECT DISTINCT p\.instance/, 'the instances that pushed to one task'],
  [/^SELECT coalesce\(max\(seq\)|^SELECT seq, hash FROM trail ORDER BY seq DESC LIMIT 1/, 'one step at the end of the table'],
]

test('no query of the tables scans one or sorts, but those that must', () => {
  const { db, texts } = watched()
  prepareAll(db)
  const queries = [...texts].filter((text) => /^\s*(SELECT|UPDATE|DELETE)/.test(text))
  expect(queries.length).toBeGreaterThan(60)
  const unbounded = queries.filter((text) => !WHOLE.some(([known]) => known.test(text)) && planOf(db, text).some(isUnbounded))
  expect(unbounded.map((text) => [text, planOf(db, text)])).toEqual([])
  // each exception is one that would be found, and the search finds what it is for
  for (const [known] of WHOLE) expect(queries.filter((text) => known.test(text))).not.toEqual([])
  expect(planOf(db, "SELECT * FROM sessions WHERE state <> 'ended' ORDER BY seq").some(isUnbounded)).toBe(true)
  db.close()
})

test('what asks for live runs reads the index of live runs', () => {
  const { db, texts } = watched()
  createSessions(contextOf(db))
  const live = [...texts].filter((text) => text.startsWith('SELECT') && text.includes("<> 'ended'"))
  expect(live.map((text) => planOf(db, text).find((step) => /sessions_(live|env)/.test(step)) ?? text).sort()).toEqual([
    'SCAN sessions USING INDEX sessions_live',
    'SEARCH sessions USING INDEX sessions_env (business=? AND env=?)',
    'SEARCH sessions USING INDEX sessions_live (business=? AND instance=?)',
    'SEARCH sessions USING INDEX sessions_live (business=? AND instance=?)',
    'SEARCH sessions USING INDEX sessions_live (business=?)',
  ])
  db.close()
})

test('a list reads and makes no row that nobody takes', () => {
  const store = open(scratch())
  const long = 'x'.repeat(1000)
  store.writeNow(() => {
    for (let n = 1; n <= 50; n++) {
      store.tasks.insert({ id: `t-${String(n)}`, title: 'a', body: long, project: null, assignee: null, createdBy: 'ada', createdByKind: 'founder' })
      store.trail.append({ kind: 'x.test', subject: null, actor: { kind: 'host', name: 'host', run: null }, body: { n } })
    }
  })
  const parse = vi.spyOn(JSON, 'parse')
  const seen: number[] = []
  for (const { seq } of store.trail.list()) {
    seen.push(seq)
    if (seq === 3) break
  }
  expect([seen, parse.mock.calls.length]).toEqual([[1, 2, 3], 3])
  parse.mockRestore()
  const [first] = store.tasks.list()
  expect(first?.id).toBe('t-1')
  // a list that was left is no longer in the way of a change
  store.writeNow(() => store.tasks.setClosed('t-1'))
  expect([...store.tasks.list({ after: 't-48' })].map(({ id }) => id)).toEqual(['t-49', 't-50'])
})
