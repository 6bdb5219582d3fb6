import { RUN_TRANSITIONS, type RunState } from '../core/states.ts'
import type { EndReason, EnvOutcome } from '../protocol/common.ts'
import type { RunRow } from '../protocol/rows.ts'
import { change, type TableContext } from './database.ts'
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
  'run' | 'business' | 'instance' | 'role' | 'task' | 'harness' | 'model' | 'family' | 'network' | 'launchedBy' | 'launchedByKind' | 'launchedByRun' | 'runDir' | 'env' | 'envRoot' | 'manifest'
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

const STATES_BEFORE = (to: RunState): string =>
  (Object.keys(RUN_TRANSITIONS) as RunState[])
    .filter((from) => (RUN_TRANSITIONS[from] as readonly RunState[]).includes(to))
    .map((state) => `'${state}'`)
    .join(', ')

/** Changes of rows; each throws when it finds no row in a state from which it is allowed. */
function createChanges(context: TableContext): Pick<SessionsTable, 'insertStarting' | 'remove' | 'setEnv' | 'setPlan' | 'setSpawned' | 'setRunner' | 'setRunning' | 'setStopping' | 'setClaimed' | 'setEnded'> {
  const { stamp } = context
  const one = <Params extends unknown[]>(sql: string): ((...params: Params) => void) => {
    const run = change<Params>(context, sql)
    return (...params) => {
      if (run(...params).changes !== 1) throw new Error(`no such session in that state: ${sql.slice(0, 60)} ${String(params.at(-1))}`)
    }
  }
  const insert = change<(string | null)[]>(
    context,
    `INSERT INTO sessions (run, business, instance, role, task, harness, model, family, network, state, launched_by, launched_by_kind, launched_by_run, run_dir, env, env_root, manifest, started_at)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 'starting', ?, ?, ?, ?, ?, ?, ?, ?)`,
  )
  const remove = change<[string]>(context, "DELETE FROM sessions WHERE run = ? AND state = 'starting'")
  const setEnv = one<[string, string, string, string, string]>("UPDATE sessions SET env = ?, env_root = ?, env_outcome = ?, env_identity = ? WHERE run = ? AND state = 'starting'")
  const setPlan = one<[string, string]>("UPDATE sessions SET plan_hash = ? WHERE run = ? AND state = 'starting'")
  const setSpawned = one<[number, string, number, string, string, string]>(
    "UPDATE sessions SET monitor_pid = ?, monitor_start = ?, init_pid = ?, init_start = ?, boot_id = ? WHERE run = ? AND state = 'starting'",
  )
  const setRunner = one<[number, string, string]>("UPDATE sessions SET runner_pid = ?, runner_start = ? WHERE run = ? AND state <> 'ended'")
  const setRunning = one<[string]>(`UPDATE sessions SET state = 'running' WHERE run = ? AND state IN (${STATES_BEFORE('running')})`)
  const setStopping = change<[string]>(context, `UPDATE sessions SET state = 'stopping' WHERE run = ? AND state IN (${STATES_BEFORE('stopping')})`)
  const setClaimed = one<[string | null, string]>('UPDATE sessions SET claimed_at = ? WHERE run = ?')
  const setEnded = change<[string, string, number | null, string | null, string]>(
    context,
    `UPDATE sessions SET state = 'ended', ended_at = ?, reason = ?, exit_code = ?, signal = ? WHERE run = ? AND state IN (${STATES_BEFORE('ended')})`,
  )
  return {
    insertStarting: (row) =>
      void insert(row.run, row.business, row.instance, row.role, row.task, row.harness, row.model, row.family, row.network, row.launchedBy, row.launchedByKind, row.launchedByRun, row.runDir, row.env, row.envRoot, row.manifest, stamp()),
    remove: (run) => remove(run).changes === 1,
    setEnv: (run, { env, envRoot, envOutcome, envIdentity }) => setEnv(env, envRoot, envOutcome, envIdentity, run),
    setPlan: (run, planHash) => setPlan(planHash, run),
    setSpawned: (run, { monitor, init, bootId }) => setSpawned(monitor.pid, monitor.start, init.pid, init.start, bootId, run),
    setRunner: (run, runner) => setRunner(runner.pid, runner.start, run),
    setRunning,
    setStopping: (run) => setStopping(run).changes === 1,
    setClaimed: (run, at) => setClaimed(at, run),
    setEnded: (run, { reason, exitCode, signal }) => setEnded(stamp(), reason, exitCode, signal, run).changes === 1,
  }
}

export function createSessions(context: TableContext): SessionsTable {
  const { db, business } = context
  const select = <Params extends unknown[]>(where: string): ((...params: Params) => SessionRecord[]) => {
    const statement = db.prepare<Params, StoredSession>(`SELECT * FROM sessions WHERE ${where}`)
    return (...params) => statement.all(...params).map(toSessionRecord)
  }
  const first = <Params extends unknown[]>(where: string): ((...params: Params) => SessionRecord | null) => {
    const statement = db.prepare<Params, StoredSession>(`SELECT * FROM sessions WHERE ${where} LIMIT 1`)
    return (...params) => {
      const row = statement.get(...params)
      return row === undefined ? null : toSessionRecord(row)
    }
  }
  const live = select<[]>("state <> 'ended' ORDER BY seq")
  const byPrefix = select<[string, string, number]>('run >= ? AND run < ? ORDER BY run LIMIT ?')
  const liveOf = first<[string, string]>("business = ? AND instance = ? AND state <> 'ended' ORDER BY seq DESC")
  const holderOf = first<[string, string]>("business = ? AND instance = ? AND state <> 'ended' AND claimed_at IS NOT NULL ORDER BY seq DESC")
  const liveInEnv = first<[string, string]>("business = ? AND env = ? AND state <> 'ended' ORDER BY seq DESC")
  const all = select<[string, number]>('business = ? ORDER BY seq DESC LIMIT ?')
  const last = first<[string, string]>("business = ? AND instance = ? AND state = 'ended' ORDER BY seq DESC")
  const lastOfTask = first<[string, string, string | null]>("business = ? AND instance = ? AND state = 'ended' AND task IS ? ORDER BY seq DESC")
  return {
    ...createChanges(context),
    get: first<[string]>('run = ?'),
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
