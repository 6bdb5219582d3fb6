import { RUN_TRANSITIONS, type RunState } from '../core/states.ts'
import { change, type SqlValue, type TableContext } from './database.ts'
import type { SessionsTable } from './session-types.ts'

type LaunchChanges = Pick<SessionsTable, 'insertStarting' | 'remove' | 'setEnv' | 'setPlan' | 'setSpawned' | 'setRunner'>
type StateChanges = Pick<SessionsTable, 'setRunning' | 'setStopping' | 'setClaimed' | 'setEnded'>

/** The states from which one may come into this one, as a list for SQL. */
const before = (to: RunState): string =>
  Object.entries(RUN_TRANSITIONS)
    .filter(([, next]) => (next as readonly RunState[]).includes(to))
    .map(([from]) => `'${from}'`)
    .join(', ')

/** A change of one row, which must be there in a state that allows it: anything else is a bug. The run is the last parameter. */
function one(context: TableContext, sql: string): (...params: SqlValue[]) => void {
  const run = change(context, sql)
  return (...params) => {
    if (run(...params).changes !== 1) throw new Error(`run ${String(params.at(-1))} is in no state for: ${sql}`)
  }
}

function createLaunchChanges(context: TableContext): LaunchChanges {
  const insert = change(
    context,
    `INSERT INTO sessions (run, business, instance, role, task, harness, model, family, network, state, launched_by, launched_by_kind, launched_by_run, run_dir, env, env_root, manifest, started_at)
     VALUES (@run, @business, @instance, @role, @task, @harness, @model, @family, @network, 'starting', @launchedBy, @launchedByKind, @launchedByRun, @runDir, @env, @envRoot, @manifest, @startedAt)`,
  )
  const remove = change(context, "DELETE FROM sessions WHERE run = ? AND state = 'starting'")
  const setEnv = one(context, "UPDATE sessions SET env = ?, env_root = ?, env_outcome = ?, env_identity = ? WHERE run = ? AND state = 'starting'")
  const setPlan = one(context, "UPDATE sessions SET plan_hash = ? WHERE run = ? AND state = 'starting'")
  const setSpawned = one(
    context,
    "UPDATE sessions SET monitor_pid = ?, monitor_start = ?, init_pid = ?, init_start = ?, boot_id = ? WHERE run = ? AND state = 'starting'",
  )
  const setRunner = one(context, "UPDATE sessions SET runner_pid = ?, runner_start = ? WHERE run = ? AND state <> 'ended'")
  return {
    insertStarting: (row) => void insert({ ...row, startedAt: context.stamp() }),
    remove: (run) => remove(run).changes === 1,
    setEnv: (run, { env, envRoot, envOutcome, envIdentity }) => setEnv(env, envRoot, envOutcome, envIdentity, run),
    setPlan: (run, planHash) => setPlan(planHash, run),
    setSpawned: (run, { monitor, init, bootId }) => setSpawned(monitor.pid, monitor.start, init.pid, init.start, bootId, run),
    setRunner: (run, { pid, start }) => setRunner(pid, start, run),
  }
}

function createStateChanges(context: TableContext): StateChanges {
  const setRunning = one(context, `UPDATE sessions SET state = 'running' WHERE state IN (${before('running')}) AND run = ?`)
  const setStopping = change(context, `UPDATE sessions SET state = 'stopping' WHERE state IN (${before('stopping')}) AND run = ?`)
  const setClaimed = one(context, 'UPDATE sessions SET claimed_at = ? WHERE run = ?')
  const setEnded = change(
    context,
    `UPDATE sessions SET state = 'ended', ended_at = ?, reason = ?, exit_code = ?, signal = ? WHERE state IN (${before('ended')}) AND run = ?`,
  )
  return {
    setRunning,
    setStopping: (run) => setStopping(run).changes === 1,
    setClaimed: (run, at) => setClaimed(at, run),
    setEnded: (run, { reason, exitCode, signal }) => setEnded(context.stamp(), reason, exitCode, signal, run).changes === 1,
  }
}

/** The changes of session rows: the steps of a launch, and the states of a run as RUN_TRANSITIONS allows them. */
export const createSessionChanges = (context: TableContext): LaunchChanges & StateChanges => ({
  ...createLaunchChanges(context),
  ...createStateChanges(context),
})
