import { z } from 'zod'
import { capabilitySchema, oidSchema } from './common.ts'
import type { ErrorCode } from '../core/codes.ts'

const nameSchema = z.string().max(128)

export const pushHeaderSchema = z.strictObject({
  cap: capabilitySchema,
  op: z.literal('push'),
  project: nameSchema,
  task: nameSchema,
  commit: oidSchema,
  size: z.int().nonnegative(),
})
export const fetchHeaderSchema = z.strictObject({
  cap: capabilitySchema,
  op: z.literal('fetch'),
  project: nameSchema,
  task: nameSchema.optional(),
  have: z.array(oidSchema).max(64),
})
/** Who is about to push asks what is there; no objects come. */
export const listHeaderSchema = z.strictObject({ cap: capabilitySchema, op: z.literal('list'), project: nameSchema })
/** The parameters of the tools `push` and `fetch`. `commit` is any name of a commit in the clone. */
export const pushToolSchema = z.strictObject({ project: nameSchema.optional(), task: nameSchema.optional(), commit: nameSchema.optional() })
export const fetchToolSchema = z.strictObject({ project: nameSchema.optional(), task: nameSchema.optional() })
export const gitHeaderSchema = z.discriminatedUnion('op', [pushHeaderSchema, fetchHeaderSchema, listHeaderSchema])
export type GitHeader = z.infer<typeof gitHeaderSchema>
export type PushHeader = z.infer<typeof pushHeaderSchema>
export type FetchHeader = z.infer<typeof fetchHeaderSchema>
export type ListHeader = z.infer<typeof listHeaderSchema>

export type PushReply = { readonly ok: true; readonly push: string; readonly ref: string; readonly commit: string } | GitRefusal
export type FetchReply = { readonly ok: true; readonly size: number; readonly tips: Readonly<Record<string, string>> } | GitRefusal
export type ListReply = { readonly ok: true; readonly tips: Readonly<Record<string, string>> } | GitRefusal
export interface GitRefusal {
  readonly ok: false
  readonly error: ErrorCode
  readonly why?: string
}
