import type { RunId } from '../core/ids.ts'
import type { EnvOutcome, KeptReason } from '../protocol/common.ts'
import type { SessionFile } from '../protocol/session.ts'
import type { EarlierRun } from './store-ports.ts'

/** A directory held by its descriptor. */
export interface PinnedDir {
  readonly fd: number
  readonly path: string
  readonly identity: string
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
