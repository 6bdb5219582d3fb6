import type { Writable } from 'node:stream'
import type { Log } from '../core/log.ts'
import type { Clock } from '../core/clock.ts'
import type { Failpoint } from './failpoints.ts'
import type { RunId } from '../core/ids.ts'
import type { BusinessConfig, RoleConfig, SystemConfig } from '../config/types.ts'
import type { EnvOutcome, KeptReason, LaunchEvent, Principal, TrailKind } from '../protocol/common.ts'
import type { EndReason } from '../protocol/end-reasons.ts'
import type { SessionFile } from '../protocol/session.ts'
import type { Placeholder } from '../harness/contract.ts'
import type { Capabilities } from './capabilities.ts'
import type { GateFacts, GateInstance } from './gate.ts'

export interface ProcessId {
  readonly pid: number
  readonly start: string
}

/** A directory held by its descriptor. */
export interface PinnedDir {
  readonly fd: number
  readonly path: string
  readonly identity: string
}

/** The configuration that a launch is judged and made by. */
export interface LaunchConfig {
  readonly system: SystemConfig
  readonly business: BusinessConfig
  readonly instances: ReadonlyMap<string, GateInstance>
  readonly roleOf: (instance: string) => RoleConfig
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

export interface EnvClaim {
  readonly env: string
  readonly root: PinnedDir
  readonly lockFd: number
  readonly outcome: EnvOutcome
  /** May the harness go on with the earlier conversation? */
  readonly conversation: boolean
  readonly continuityLost: string | null
  readonly workspace: PinnedDir
  readonly state: PinnedDir
  readonly cache: PinnedDir
  assertSame(): void
  undo(): Promise<void>
  close(): void
}

export interface ClaimRequest {
  readonly business: string
  readonly env: string
  readonly instance: string
  readonly role: string
  readonly task: string | null
  readonly run: RunId
  readonly mode: 'keep' | 'fresh' | 'continue'
  readonly discard: boolean
  readonly continueFrom: EarlierRun | null
  /** Whose clones' folders must be no links. */
  readonly projects: readonly string[]
}

export interface PreparedProject {
  readonly id: string
  readonly path: string
  readonly branch: string
  readonly kept: KeptReason | null
  readonly mainDiverged: boolean
}

/** A run's directory as a launch fills it. */
export interface RunDirectory {
  readonly path: string
  readonly home: PinnedDir
  readonly bundle: PinnedDir
  writeBundle(name: string, data: string | Buffer): void
  /** Replaces what session.json says, in the very file that the sandbox has bound. */
  writeSession(session: SessionFile): void
  /** session.json, for the sandbox to bind. */
  readonly sessionFile: { readonly fd: number; readonly path: string }
  /** runner.log, opened for append. */
  readonly logFd: number
  appendTranscript(line: string): void
  remove(): void
  close(): void
}

export interface SandboxEnd {
  readonly exitCode: number | null
  readonly signal: NodeJS.Signals | null
  readonly outOfMemory: boolean
  readonly statusLost: boolean
}

export interface SessionSandbox {
  readonly monitor: ProcessId
  readonly init: ProcessId
  readonly stdin: Writable
  /** Which limits are kept, and how; known once settled. */
  readonly limits: Readonly<Record<string, string>>
  readonly ended: Promise<SandboxEnd>
  settle(signal?: AbortSignal): Promise<void>
  unblock(): Promise<ProcessId>
  signalRunner(signal: NodeJS.Signals): boolean
  kill(): Promise<void>
}

export interface LaunchDeps {
  readonly log: Log
  readonly clock: Clock
  readonly config: () => LaunchConfig
  readonly store: LaunchStore
  readonly broker: LaunchBroker
  readonly capabilities: Capabilities
  readonly failpoint: Failpoint
  readonly bootId: string
  /** Aborts when the host stops: a launch in progress is undone. */
  readonly stopping: AbortSignal
  readonly limited: () => Readonly<Record<string, string>>
  readonly env: NodeJS.ProcessEnv
  readonly paths: { readonly envRoot: (env: string) => string; readonly runDir: (run: string) => string }
  readonly facts: (target: GateInstance) => Promise<GateFacts>
  readonly claim: (request: ClaimRequest) => Promise<EnvClaim>
  readonly prepare: (workspace: PinnedDir, signal: AbortSignal) => Promise<readonly PreparedProject[]>
  readonly openRunDirectory: (run: RunId, bundle: ReadonlyMap<string, string | Buffer>, session: SessionFile) => RunDirectory
  /** Spawned, and blocked before its command. */
  readonly openSandbox: (request: SandboxRequest) => Promise<OpenedSandbox>
  /** The role's prompt file, read now; null when the role has none. */
  readonly rolePrompt: (role: RoleConfig) => Promise<string | null>
  readonly harnessOf: (name: string) => HarnessFacts
  readonly sockets: Readonly<Record<'bus' | 'launch' | 'git', string>>
  /** Makes the run's own socket to its model. */
  readonly openModel: (row: StartingRow) => Promise<ModelSocket>
  readonly closeModel: (run: RunId) => Promise<void>
  readonly runnerProgram: Buffer
  /** Hands a recorded session to whoever watches over live ones. */
  readonly adopt: (started: StartedRun) => void
}

export interface OpenedSandbox {
  readonly sandbox: SessionSandbox
  readonly planHash: string
}

export interface ModelSocket {
  readonly path: string
  /** null: the host holds no credential. */
  readonly placeholder: Placeholder | null
}

export interface HarnessFacts {
  readonly needsModelSocket: boolean
  /** Programs of Mosaic's own that its bundle holds beside the runner, by name. */
  readonly programs: ReadonlyMap<string, Buffer>
  readonly versions: { readonly piVersion: string | null; readonly claudeVersion: string | null }
}

export interface SandboxRequest {
  readonly run: RunId
  readonly role: RoleConfig
  readonly session: SessionFile
  readonly claim: EnvClaim
  readonly directory: RunDirectory
  readonly sockets: readonly { readonly name: string; readonly path: string }[]
  readonly env: Readonly<Record<string, string>>
  /** What the sandbox holds in place of a session credential. */
  readonly placeholder: Placeholder | null
}

/** A run from step 5 on. */
export interface StartedRun extends EndedRun {
  readonly startedMs: number
  readonly claim: EnvClaim
  readonly directory: RunDirectory
  readonly sandbox: SessionSandbox
  readonly limits: RoleConfig['limits']
}
