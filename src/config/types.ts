import type { Grant } from '../protocol/common.ts'
import type { EffectiveBusiness, EffectiveSystem } from './effective.ts'
import type { DataRootOrigin } from './paths.ts'
import type { Source } from './source.ts'

/** Everything that was configured, checked and resolved: paths absolute, durations in ms, sizes in bytes. */
export interface Config {
  readonly configDir: string
  readonly system: SystemConfig
  readonly businesses: ReadonlyMap<string, BusinessConfig>
  readonly sources: ConfigSources
}

/** Where values came from, for `config explain` and `config show`. */
export interface ConfigSources {
  readonly system: SourceOf<EffectiveSystem>
  readonly businesses: ReadonlyMap<string, SourceOf<EffectiveBusiness>>
  readonly dataRoot: DataRootOrigin
}

export interface SourceOf<Effective> {
  readonly source: Source
  /** The file's content with every default filled in. */
  readonly effective: Effective
}

export interface SystemConfig {
  readonly founder: string
  readonly dataRoot: string
  readonly model: string
  /** Family to model patterns, in the file's order: a model belongs to the first family that matches. */
  readonly families: Readonly<Record<string, readonly string[]>>
  readonly harnesses: Readonly<Record<string, HarnessConfig>>
  readonly keepRunsMs: number
  /** null: the first bwrap on PATH, else /usr/bin/bwrap. */
  readonly bwrap: string | null
  readonly limits: SystemLimits
}

export interface HarnessConfig {
  readonly bin: string | null
  readonly version: string | null
  readonly paths: readonly string[]
  /** Models that its sessions may use beside their role's. */
  readonly models: readonly string[]
}

export interface SystemLimits {
  readonly prepareTimeoutMs: number
  readonly brokerTries: number
  readonly brokerRetryMs: number
  readonly pushBytes: number
  readonly pushUnpackedBytes: number
  readonly pushObjects: number
}

/** Records have no prototype: a name that an agent made up (`constructor`) finds nothing. */
export interface BusinessConfig {
  readonly id: string
  readonly projects: Readonly<Record<string, ProjectConfig>>
  readonly roles: Readonly<Record<string, RoleConfig>>
  /** Every seat: one per role with the role's name, then those of `instances`. */
  readonly instances: ReadonlyMap<string, { readonly role: string }>
  readonly launch: LaunchConfig
}

export interface ProjectConfig {
  readonly root: string
  readonly branch: string
  /** Any JSON, as written. */
  readonly resources: unknown
}

export interface LaunchConfig {
  readonly by: string | null
  readonly instances: readonly string[]
  /** Live sessions per model family; a family without an entry has 0. */
  readonly max: Readonly<Record<string, number>>
}

export interface RoleConfig {
  readonly grants: readonly Grant[]
  readonly harness: string
  readonly model: string
  readonly limits: RoleLimits
  readonly prompt: string | null
  readonly network: 'none' | 'host'
  readonly networkReason: string | null
  readonly env: Readonly<Record<string, string>>
  readonly credentials: Readonly<Record<string, CredentialConfig>>
}

export interface RoleLimits {
  readonly tools: readonly string[]
  readonly memoryBytes: number | null
  readonly pids: number
  readonly cpus: number | null
  readonly turnTimeoutMs: number
  readonly idleTimeoutMs: number | null
  readonly runTimeoutMs: number | null
  readonly turnsPerHour: number
  readonly enforce: 'available' | 'required'
}

/** A reference: exactly one of `env` (a variable of the bus host) and `file` (absolute) is set. */
export interface CredentialConfig {
  readonly env: string | null
  readonly file: string | null
  /** A date or an RFC 3339 time. */
  readonly expires: string | null
}
