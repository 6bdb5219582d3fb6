import type { EndReason, EnvOutcome } from '../protocol/common.ts'
import type { RunRow } from '../protocol/rows.ts'
import type { SqlValue, TableContext } from './database.ts'
import { createSessionChanges } from './session-changes.ts'
import { type StoredSession, toSessionRecord } from './session-rows.ts'

export interface ProcessId {
  readonly pid: number
  readonly start: string
}

/** A run with what its host must know. `paused` and `waitingUntil` of a RunRow live in the host's memory. */
export interface SessionRecord extends Omit<RunRow, 'paused' | 'waitingUntil'> {
  /** The name of the env root's directory. */
  readonly env: string
  readonly envOutcome: EnvOutcome | null
  readonly envIdentity: string | null
  readonly launchedByKind: 'founder' | 'session'
  readonly launchedByRun: string | null
  readonly monitor: ProcessId | null
  readonly init: ProcessId | null
  readonly runner: ProcessId | null
  readonly bootId: string | null
  readonly claimedAt: string | null
  /** Path of manifest.json. */
  readonly manifest: string
  readonly network: string
  readonly planHash: string | null
}

export type StartingSession = Pick<
  SessionRecord,
  | 'run'
  | 'business'
  | 'instance'
  | 'role'
  | 'task'
  | 'harness'
  | 'model'
  | 'family'
  | 'network'
  | 'launchedBy'
  | 'launchedByKind'
  | 'launchedByRun'
  | 'runDir'
  | 'env'
  | 'envRoot'
  | 'manifest'
>
export type SessionEnv = Pick<SessionRecord, 'env' | 'envRoot'> & { readonly envOutcome: EnvOutcome; readonly envIdentity: string }
export interface SessionEnd {
  readonly reason: EndReason
  readonly exitCode: number | null
  readonly signal: string | null
}

export interface SessionsTable {
  insertStarting(row: StartingSession): void
  /** Forgets a run whose launch was undone; only one that is `starting`. */
  remove(run: string): boolean
  /** The env root that the claim decided on. */
  setEnv(run: string, env: SessionEnv): void
  setPlan(run: string, planHash: string): void
  setSpawned(run: string, processes: { readonly monitor: ProcessId; readonly init: ProcessId; readonly bootId: string }): void
  setRunner(run: string, runner: ProcessId): void
  setRunning(run: string): void
  /** False when it is not `running` (it may have ended by now). */
  setStopping(run: string): boolean
  setClaimed(run: string, at: string | null): void
  /** False when it has ended already. */
  setEnded(run: string, end: SessionEnd): boolean
  get(run: string): SessionRecord | null
  findByPrefix(prefix: string): SessionRecord[]
  /** starting, running and stopping, of every business. */
  live(): SessionRecord[]
  notEnded(): SessionRecord[]
  liveOf(instance: string): SessionRecord | null
  /** The run that holds the role of an instance. */
  holderOf(instance: string): SessionRecord | null
  /** The run that has an env root, if one lives. */
  liveInEnv(env: string): SessionRecord | null
  /** Newest first. */
  all(limit?: number): SessionRecord[]
  /** The last run of an instance that has ended; with `task`, of that task (null: of none). */
  lastOf(instance: string, task?: string | null): SessionRecord | null
}

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
  const byPrefix = select('run >= ? AND run < ? ORDER BY run LIMIT ?')
  const liveOf = first("business = ? AND instance = ? AND state <> 'ended' ORDER BY seq DESC")
  const holderOf = first("business = ? AND instance = ? AND state <> 'ended' AND claimed_at IS NOT NULL ORDER BY seq DESC")
  const liveInEnv = first("business = ? AND env = ? AND state <> 'ended' ORDER BY seq DESC")
  const all = select('business = ? ORDER BY seq DESC LIMIT ?')
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
    liveInEnv: (env) => liveInEnv(business, env),
    all: (limit = ALL_LIMIT) => all(business, limit),
    lastOf: (instance, task) => (task === undefined ? last(business, instance) : lastOfTask(business, instance, task)),
  }
}
