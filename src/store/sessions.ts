import type { SqlValue, TableContext } from './database.ts'
import { createSessionChanges } from './session-changes.ts'
import { type StoredSession, toSessionRecord } from './session-rows.ts'
import type { SessionRecord, SessionsTable } from './session-types.ts'

const PREFIX_LIMIT = 20
const ALL_LIMIT = 10_000

export function createSessions(context: TableContext): SessionsTable {
  const { db, business } = context
  const select = (where: string): ((...params: SqlValue[]) => SessionRecord[]) => {
    const statement = db.prepare<SqlValue[], StoredSession>(`SELECT * FROM sessions WHERE ${where}`)
    return (...params) => statement.all(...params).map(toSessionRecord)
  }
  const first = (where: string): ((...params: SqlValue[]) => SessionRecord | null) => {
    const statement = db.prepare<SqlValue[], StoredSession>(`SELECT * FROM sessions WHERE ${where} LIMIT 1`)
    return (...params) => {
      const row = statement.get(...params)
      return row === undefined ? null : toSessionRecord(row)
    }
  }
  const live = select("state <> 'ended' ORDER BY seq")
  const byPrefix = select('run >= ? AND run < ? ORDER BY run LIMIT +?')
  const liveOf = first("business = ? AND instance = ? AND state <> 'ended' ORDER BY seq DESC")
  const holderOf = first("business = ? AND instance = ? AND state <> 'ended' AND claimed_at IS NOT NULL ORDER BY seq DESC")
  const liveInEnv = first("business = ? AND env = ? AND run IS NOT ? AND state <> 'ended' ORDER BY seq DESC")
  const all = select('business = ? ORDER BY seq DESC LIMIT +?')
  const last = first("business = ? AND instance = ? AND state = 'ended' ORDER BY seq DESC")
  const lastOfTask = first("business = ? AND instance = ? AND state = 'ended' AND task IS ? ORDER BY seq DESC")
  return {
    ...createSessionChanges(context),
    get: first('run = ?'),
    findByPrefix: (prefix) => byPrefix(prefix, `${prefix}\u{10ffff}`, PREFIX_LIMIT),
    live,
    notEnded: live,
    liveOf: (instance) => liveOf(business, instance),
    holderOf: (instance) => holderOf(business, instance),
    liveInEnv: (env, but) => liveInEnv(business, env, but),
    all: (limit = ALL_LIMIT) => all(business, limit),
    lastOf: (instance, task) => (task === undefined ? last(business, instance) : lastOfTask(business, instance, task)),
  }
}
