import type { RunId } from '../core/ids.ts'
import type { EnvOutcome, LaunchEvent, Principal, TrailKind } from '../protocol/common.ts'
import type { EndReason } from '../protocol/end-reasons.ts'

export interface ProcessId {
  readonly pid: number
  readonly start: string
}

/** The row that a launch begins with, written in the transaction of the gate. */
export interface StartingRow {
  readonly run: RunId
  readonly business: string
  readonly instance: string
  readonly role: string
  readonly task: string | null
  readonly harness: string
  readonly model: string
  readonly family: string
  readonly network: 'none' | 'host'
  readonly launchedBy: string
  readonly launchedByKind: 'founder' | 'session'
  readonly launchedByRun: string | null
  readonly env: string
  readonly envRoot: string
  readonly runDir: string
  readonly manifest: string
}

/** What a run left behind that a later one may continue. */
export interface EarlierRun {
  readonly run: string
  readonly business: string
  readonly instance: string
  readonly role: string
  readonly task: string | null
  readonly env: string
  /** What its env root was, `dev:ino`. */
  readonly identity: string | null
}

/** The row of a run, as far as a later one goes on from it. */
export type SessionFacts = Omit<EarlierRun, 'identity'> & { readonly envIdentity: string | null }

export interface TrailEntry {
  readonly kind: TrailKind
  readonly subject: string | null
  readonly actor: { readonly kind: 'founder' | 'session' | 'host'; readonly name: string; readonly run: string | null }
  readonly body: Readonly<Record<string, unknown>>
}

/** The store as a launch uses it; every method runs inside `writeNow`. */
export interface LaunchStore {
  /** `reserve`: an end, which is written also on a full disk. */
  writeNow<T>(act: () => T, options?: { readonly reserve?: boolean }): T
  /** Called after each change; returns the end of it. */
  onChange(listener: () => void): () => void
  readonly sessions: {
    live(): readonly { readonly run: string; readonly instance: string; readonly family: string }[]
    insertStarting(row: StartingRow): void
    remove(run: string): unknown
    setEnv(run: string, env: { readonly env: string; readonly envRoot: string; readonly envOutcome: EnvOutcome; readonly envIdentity: string }): void
    setPlan(run: string, planHash: string): void
    setSpawned(run: string, spawned: { readonly monitor: ProcessId; readonly init: ProcessId; readonly bootId: string }): void
    setRunner(run: string, runner: ProcessId): void
    setRunning(run: string): void
    setStopping(run: string): unknown
    setEnded(run: string, end: { readonly reason: EndReason; readonly exitCode: number | null; readonly signal: string | null }): unknown
    get(run: string): SessionFacts | null
    lastOf(instance: string, task?: string | null): SessionFacts | null
  }
  readonly launchLog: {
    append(entry: {
      readonly event: LaunchEvent
      readonly run: string | null
      readonly instance: string
      readonly fields: Readonly<Record<string, unknown>>
    }): number
    /** false: this run has its end already. */
    appendEnd(entry: { readonly run: string; readonly instance: string; readonly fields: Readonly<Record<string, unknown>> }): boolean
  }
  readonly trail: { append(entry: TrailEntry): unknown }
}

export interface LaunchTask {
  readonly id: string
  readonly title: string
  readonly body: string
  readonly state: 'open' | 'closed'
  readonly assignee: string | null
}

export interface EndedRun {
  readonly run: string
  readonly instance: string
  readonly role: string
  readonly task: string | null
  readonly launchedBy: string
  readonly launchedByKind: 'founder' | 'session'
}

/** The broker as a launch uses it; every method runs inside `writeNow`. */
export interface LaunchBroker {
  task(id: string): LaunchTask | null
  assignTask(id: string, instance: string, by: Principal): void
  /** The first REQUEST of a run: the task's title and body, or the request, or both in that order. */
  firstRequest(from: Principal, to: string, about: { readonly task: string | null; readonly request: string | null }): unknown
  /** Releases the role, gives waiting messages back, tells launcher and whoever is owed an answer; true when the role was held. */
  runEnded(run: string, end: { readonly reason: EndReason; readonly exitCode: number | null; readonly signal: string | null }): boolean
  /** After the transaction: the connections of the run close. */
  afterEnd(run: string): void
}
