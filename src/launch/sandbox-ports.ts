import type { Writable } from 'node:stream'
import type { RoleConfig } from '../config/types.ts'
import type { RunId } from '../core/ids.ts'
import type { Placeholder } from '../harness/contract.ts'
import type { SessionFile } from '../protocol/session.ts'
import type { ProcessId } from './store-ports.ts'
import type { EnvClaim, RunDirectory } from './tree-ports.ts'

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
  unblock(signal?: AbortSignal): Promise<ProcessId>
  signalRunner(signal: NodeJS.Signals): boolean
  kill(): Promise<void>
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
  /** Ends the start of it. */
  readonly signal: AbortSignal
  /** What the sandbox holds in place of a session credential. */
  readonly placeholder: Placeholder | null
}
