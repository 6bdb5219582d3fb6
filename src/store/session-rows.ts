import type { EnvOutcome } from '../protocol/common.ts'
import type { EndReason } from '../protocol/end-reasons.ts'
import type { RunState } from '../core/states.ts'
import type { ProcessId, SessionRecord } from './session-types.ts'

/** A session as it lies in the table. */
export interface StoredSession {
  readonly run: string
  readonly business: string
  readonly instance: string
  readonly role: string
  readonly task: string | null
  readonly harness: string
  readonly model: string
  readonly family: string
  readonly network: string
  readonly state: RunState
  readonly launched_by: string
  readonly launched_by_kind: 'founder' | 'session'
  readonly launched_by_run: string | null
  readonly run_dir: string
  readonly env: string
  readonly env_root: string
  readonly env_outcome: EnvOutcome | null
  readonly env_identity: string | null
  readonly manifest: string
  readonly plan_hash: string | null
  readonly monitor_pid: number | null
  readonly monitor_start: string | null
  readonly init_pid: number | null
  readonly init_start: string | null
  readonly runner_pid: number | null
  readonly runner_start: string | null
  readonly boot_id: string | null
  readonly started_at: string
  readonly claimed_at: string | null
  readonly ended_at: string | null
  readonly reason: EndReason | null
  readonly exit_code: number | null
  readonly signal: string | null
}

const toProcess = (pid: number | null, start: string | null): ProcessId | null => (pid === null || start === null ? null : { pid, start })

export function toSessionRecord(row: StoredSession): SessionRecord {
  return {
    run: row.run,
    business: row.business,
    instance: row.instance,
    role: row.role,
    task: row.task,
    harness: row.harness,
    model: row.model,
    family: row.family,
    network: row.network,
    state: row.state,
    live: row.state !== 'ended',
    launchedBy: row.launched_by,
    launchedByKind: row.launched_by_kind,
    launchedByRun: row.launched_by_run,
    runDir: row.run_dir,
    env: row.env,
    envRoot: row.env_root,
    envOutcome: row.env_outcome,
    envIdentity: row.env_identity,
    manifest: row.manifest,
    planHash: row.plan_hash,
    pid: row.monitor_pid,
    runnerPid: row.runner_pid,
    monitor: toProcess(row.monitor_pid, row.monitor_start),
    init: toProcess(row.init_pid, row.init_start),
    runner: toProcess(row.runner_pid, row.runner_start),
    bootId: row.boot_id,
    startedAt: row.started_at,
    claimedAt: row.claimed_at,
    endedAt: row.ended_at,
    reason: row.reason,
    exitCode: row.exit_code,
    signal: row.signal,
  }
}
