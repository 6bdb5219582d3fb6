import type { BusinessConfig, RoleConfig, SystemConfig } from '../config/types.ts'
import type { Clock } from '../core/clock.ts'
import type { RunId } from '../core/ids.ts'
import type { Log } from '../core/log.ts'
import type { SessionFile } from '../protocol/session.ts'
import type { Capabilities } from './capabilities.ts'
import type { Failpoint } from './failpoints.ts'
import type { GateFacts, GateInstance } from './gate.ts'
import type { LateEnds } from './late-ends.ts'
import type { HarnessFacts, ModelSocket, OpenedSandbox, SandboxRequest, SessionSandbox } from './sandbox-ports.ts'
import type { EndedRun, LaunchBroker, LaunchStore, StartingRow } from './store-ports.ts'
import type { ClaimRequest, EnvClaim, PinnedDir, PreparedProject, RunDirectory } from './tree-ports.ts'

/** The configuration that a launch is judged and made by. */
export interface LaunchConfig {
  readonly system: SystemConfig
  readonly business: BusinessConfig
  readonly instances: ReadonlyMap<string, GateInstance>
  readonly roleOf: (instance: string) => RoleConfig
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
  /** Told the run of a launch that passed its gate. */
  readonly admitted?: (run: RunId) => void
  readonly limited: () => Readonly<Record<string, string>>
  readonly env: NodeJS.ProcessEnv
  readonly paths: { readonly envRoot: (env: string) => string; readonly runDir: (run: string) => string }
  readonly facts: (target: GateInstance, config: LaunchConfig) => Promise<GateFacts>
  readonly claim: (request: ClaimRequest, of: { readonly harness: string; readonly signal: AbortSignal }) => Promise<EnvClaim>
  readonly prepare: (workspace: PinnedDir, by: { readonly config: LaunchConfig; readonly signal: AbortSignal }) => Promise<readonly PreparedProject[]>
  /** Leaves in state/ only the conversation that goes on, if any, and writes the harness's configuration. It cannot be undone. */
  readonly tidyState: (claim: EnvClaim, session: SessionFile, signal: AbortSignal) => Promise<void>
  readonly openRunDirectory: (run: RunId, bundle: ReadonlyMap<string, string | Buffer>, session: SessionFile) => RunDirectory
  /** Spawned, and blocked before its command. */
  readonly openSandbox: (request: SandboxRequest) => Promise<OpenedSandbox>
  /** The role's prompt file, read now; null when the role has none. */
  readonly rolePrompt: (role: RoleConfig) => Promise<string | null>
  readonly harnessOf: (name: string) => HarnessFacts
  readonly sockets: Readonly<Record<'bus' | 'launch' | 'git', string>>
  /** Makes the run's own socket to its model. */
  readonly openModel: (row: StartingRow, config: LaunchConfig) => Promise<ModelSocket>
  readonly closeModel: (run: RunId) => Promise<void>
  readonly runnerProgram: Buffer
  /** Takes what could not be written down: it is tried until there is room. */
  readonly keepTrying: LateEnds['keepTrying']
  /** Hands a recorded session to whoever watches over live ones. */
  readonly adopt: (started: StartedRun) => void
  /** Ends a run that was adopted and cannot be given what it needs: `failed`. */
  readonly fail: (run: RunId) => void
}

/** A run from step 5 on. */
export interface StartedRun extends EndedRun {
  readonly startedMs: number
  readonly claim: EnvClaim
  readonly directory: RunDirectory
  readonly sandbox: SessionSandbox
  readonly limits: RoleConfig['limits']
}
