import { z } from 'zod'
import { bytesAtMost, capabilitySchema, type EnvOutcome, instanceSchema, REQUEST_BYTES } from './common.ts'
import type { ErrorCode } from '../core/codes.ts'

/** A launch as an agent asks for it; `fresh` is the founder's alone. */
const fields = {
  instance: instanceSchema,
  task: z.string().max(128).optional(),
  request: bytesAtMost(REQUEST_BYTES).optional(),
  mode: z.enum(['keep', 'continue']).optional(),
  run: z.string().max(128).optional(),
}
const runGoesWithContinue = (value: { mode?: string | undefined; run?: string | undefined }): boolean => value.run === undefined || value.mode === 'continue'

/** The parameters of the tool `launch`. */
export const launchToolSchema = z.strictObject(fields).refine(runGoesWithContinue, 'run goes with mode continue')
/** The one request of the launch socket. */
export const launchRequestSchema = z.strictObject({ cap: capabilitySchema, ...fields }).refine(runGoesWithContinue, 'run goes with mode continue')
export type LaunchRequest = z.infer<typeof launchRequestSchema>

export type LaunchReply =
  | { readonly ok: true; readonly run: string; readonly instance: string; readonly harness: string; readonly model: string; readonly env: EnvOutcome }
  | { readonly ok: false; readonly error: ErrorCode }
