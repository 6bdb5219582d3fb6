import type { Log } from '../core/log.ts'
import type { PinnedDir } from './pin.ts'

export const ENVS = 'envs'
export const LAUNCHES = 'launches'
export const WORKSPACE = 'workspace'
export const STATE = 'state'
/** The directories that a session gets; everything else in an env root is the host's. */
export const DIRECTORIES = [WORKSPACE, STATE, 'cache'] as const

export interface Unsaved {
  readonly project: string
  readonly reason: string
}

/** The steps of a claim, in order; a test acts between them. */
export type Step = 'pin' | 'lock' | 'flock' | 'inode-check' | 'read-owner' | 'decide' | 'reset' | 'write-owner' | 'directories' | 'done'

export interface Hooks {
  readonly before: (step: Step) => void | Promise<void>
}

/** What taking an env root's lock needs. */
export interface LockDeps {
  readonly dataRoot: PinnedDir
  /** Exclusive flock(2) without waiting; false: somebody holds it. */
  readonly tryFlock: (fd: number) => boolean
  /** The live run (starting, running, stopping) that works in this env root, by the store; never the one that asks, whose own row is there already. */
  readonly holderOf: (business: string, env: string, asker: string | null) => string | null
  readonly log: Log
  readonly hooks?: Hooks
}

/** What also looks into trees that agents wrote; both run in a sandbox that sees only that tree. */
export interface TreeDeps {
  /** Removes every entry of the directory but these, following no link, never the directory itself. */
  readonly emptyTree: (dir: Pick<PinnedDir, 'fd' | 'path'>, keep: readonly string[], signal?: AbortSignal) => Promise<void>
  readonly unsavedWork: (root: { readonly workspace: PinnedDir; readonly signal?: AbortSignal | undefined }) => Promise<readonly Unsaved[]>
}

export type ClaimDeps = LockDeps &
  TreeDeps & {
    /** Ends a claim while it is made; what is taken back then is taken back whole. */
    readonly signal?: AbortSignal
  }
