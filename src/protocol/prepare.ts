import { z } from 'zod'
import { KEPT_REASONS, oidSchema } from './common.ts'

/** A project's root as it stands in the host: the common git directory that was resolved for it, its text for `remote.origin.url`. */
export interface SyncRequest {
  readonly op: 'sync'
  readonly commonDir: string
  readonly branch: string
  readonly repository: string
  /** Move main although the root's branch was rewritten. */
  readonly force: boolean
  readonly budgetMs: number
}

export interface CloneRequest {
  readonly id: string
  readonly root: string
  readonly branch: string
  /** The main-only store. */
  readonly repository: string
  /** The working repository's main. */
  readonly tip: string
}

export interface WorkspaceRequest {
  readonly op: 'workspace'
  readonly workspace: string
  readonly projects: readonly CloneRequest[]
  readonly budgetMs: number
}

export interface UnsavedRequest {
  readonly op: 'unsaved'
  readonly workspace: string
  readonly budgetMs: number
}

/** Removes what is in a directory: every entry but `keep`, or of those only `only`. */
export interface EmptyRequest {
  readonly op: 'empty'
  readonly path: string
  readonly keep: readonly string[]
  readonly only: readonly string[] | null
}

/** One JSON object on the helper's standard input. */
export type PrepareRequest = SyncRequest | WorkspaceRequest | UnsavedRequest | EmptyRequest

/** Why a clone may not be thrown away: work in its tree, commits that the working repository lacks, or no way to tell. */
export const UNSAVED_REASONS = ['dirty', 'unpushed', 'unreadable', 'hung'] as const
export type UnsavedReason = (typeof UNSAVED_REASONS)[number]

/** Results are parsed by the host as what they are: words of a sandbox in which an agent's files were looked at. */
export const syncResultSchema = z.strictObject({ tip: oidSchema, mainDiverged: z.boolean() })
export const workspaceResultSchema = z.strictObject({
  projects: z.array(z.strictObject({ id: z.string(), kept: z.enum(KEPT_REASONS).nullable() })),
})
export const unsavedResultSchema = z.strictObject({
  unsaved: z.array(z.strictObject({ project: z.string(), reason: z.enum(UNSAVED_REASONS) })),
  /** Clones with nothing but commits in them, and the tips of these: work unless the working repository has them. */
  committed: z.array(z.strictObject({ project: z.string(), tips: z.array(oidSchema) })),
})
export const emptyResultSchema = z.strictObject({})
export type SyncResult = z.infer<typeof syncResultSchema>
export type WorkspaceResult = z.infer<typeof workspaceResultSchema>
export type UnsavedResult = z.infer<typeof unsavedResultSchema>

/** One JSON object on its standard output. Errors cross as code and message; nothing is classified by its text. */
export const prepareReplySchema = z.union([
  z.strictObject({ ok: z.literal(true), result: z.unknown() }),
  z.strictObject({ ok: z.literal(false), code: z.string(), message: z.string() }),
])
export type PrepareReply = z.infer<typeof prepareReplySchema>
