import { eachRow, type SqlValue, type TableContext } from './database.ts'
import { createSessionChanges } from './session-changes.ts'
import { type StoredSession, toSessionRecord } from './session-rows.ts'
import type { SessionRecord, SessionsTable } from './session-types.ts'

const PREFIX_LIMIT = 20

/** No history is read: the planner would take the index of all runs for as good, and pass over each that has ended. */
const LIVE = "sessions INDEXED BY sessions_live WHERE state <> 'ended'"

type Lists = Pick<SessionsTable, 'listAll' | 'listLive'>

function createLists({ db, business }: TableContext): Lists {
  const all = db.prepare<unknown[], StoredSession>('SELECT * FROM sessions WHERE business = ? AND seq < ? ORDER BY seq DESC')
  const live = db.prepare<unknown[], StoredSession>(`SELECT * FROM ${LIVE} AND business = ? AND seq > ? ORDER BY seq`)
  const seqOf = db.prepare<[string], number>('SELECT seq FROM sessions WHERE run = ?').pluck()
  return {
    // only a launch that was undone is gone, and it was the newest run: it ends a page of all runs when there is none before it
    listAll: (after) => eachRow(all, [business, after === undefined ? Number.MAX_SAFE_INTEGER : (seqOf.get(after) ?? 0)], toSessionRecord),
    listLive: (after) => eachRow(live, [business, after === undefined ? 0 : (seqOf.get(after) ?? Number.MAX_SAFE_INTEGER)], toSessionRecord),
  }
}

export function createSessions(context: TableContext): SessionsTable {
  const { db, business } = context
  const select = (from: string): ((...params: SqlValue[]) => SessionRecord[]) => {
    const statement = db.prepare<SqlValue[], StoredSession>(`SELECT * FROM ${from}`)
    return (...params) => statement.all(...params).map(toSessionRecord)
  }
  const first = (from: string): ((...params: SqlValue[]) => SessionRecord | null) => {
    const statement = db.prepare<SqlValue[], StoredSession>(`SELECT * FROM ${from} LIMIT 1`)
    return (...params) => {
      const row = statement.get(...params)
      return row === undefined ? null : toSessionRecord(row)
    }
  }
  const byPrefix = select('sessions WHERE run >= ? AND run < ? ORDER BY run LIMIT +?')
  const liveOf = first(`${LIVE} AND business = ? AND instance = ? ORDER BY seq DESC`)
  const holderOf = first(`${LIVE} AND business = ? AND instance = ? AND claimed_at IS NOT NULL ORDER BY seq DESC`)
  const liveInEnv = first("sessions WHERE business = ? AND env = ? AND run IS NOT ? AND state <> 'ended' ORDER BY seq DESC")
  const last = first("sessions WHERE business = ? AND instance = ? AND state = 'ended' ORDER BY seq DESC")
  const lastOfTask = first("sessions WHERE business = ? AND instance = ? AND state = 'ended' AND task IS ? ORDER BY seq DESC")
  return {
    ...createSessionChanges(context),
    get: first('sessions WHERE run = ?'),
    findByPrefix: (prefix) => byPrefix(prefix, `${prefix}\u{10ffff}`, PREFIX_LIMIT),
    live: select(`${LIVE} ORDER BY seq`),
    liveOf: (instance) => liveOf(business, instance),
    holderOf: (instance) => holderOf(business, instance),
    liveInEnv: (env, but) => liveInEnv(business, env, but),
    ...createLists(context),
    lastOf: (instance, task) => (task === undefined ? last(business, instance) : lastOfTask(business, instance, task)),
  }
}
