import type { EnvOutcome } from '../protocol/common.ts'
import type { EndReason } from '../protocol/end-reasons.ts'
import type { RunRow } from '../protocol/rows.ts'

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
  liveOf(instance: string): SessionRecord | null
  /** The run that holds the role of an instance. */
  holderOf(instance: string): SessionRecord | null
  /** The run that has an env root, if one lives; `but` is looked over. */
  liveInEnv(env: string, but: string | null): SessionRecord | null
  /** Every run, newest first, those before the run `after`. */
  listAll(after?: string): Iterable<SessionRecord>
  /** Live ones, oldest first, those after the run `after`. */
  listLive(after?: string): Iterable<SessionRecord>
  /** The last run of an instance that has ended; with `task`, of that task (null: of none). */
  lastOf(instance: string, task?: string | null): SessionRecord | null
}
