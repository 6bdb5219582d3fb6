import { z } from 'zod'
import type { ErrorCode } from '../core/codes.ts'
import { isObject } from '../core/objects.ts'

export const PROTOCOL_VERSION = 1

/** A capability as it stands in a request: any string; which one is live is the host's to say, in constant time. */
export const capabilitySchema = z.string().max(4096)
export const instanceSchema = z.string().max(128)
export const oidSchema = z.string().regex(/^[0-9a-f]{40}$/, 'an object id is 40 lower-case hex digits')

const byteLength = (text: string): number => Buffer.byteLength(text, 'utf8')
export const bytesAtMost = (limit: number): z.ZodType<string> => z.string().refine((text) => byteLength(text) <= limit, `at most ${String(limit)} bytes`)

export const REQUEST_BYTES = 2048
export const BODY_BYTES = 64 * 1024
export const PAGE_BYTES = 256 * 1024
export const IN_FLIGHT = 64

export const requestIdSchema = z.union([z.string().max(200), z.number()])
export type RequestId = z.infer<typeof requestIdSchema>

/** A request on the bus and control sockets, before its method's own schema. */
/** Kept as it came: a record schema would drop a key `__proto__` before the method's own schema can refuse it. */
const paramsSchema = z.custom<Record<string, unknown>>(isObject).default({})
export const callSchema = z.strictObject({ id: requestIdSchema, method: z.string().max(64), params: paramsSchema })
export type Call = z.infer<typeof callSchema>

export type Reply =
  | { readonly id: RequestId; readonly ok: true; readonly result: unknown }
  | { readonly id: RequestId; readonly ok: false; readonly error: ErrorCode; readonly why?: string; readonly hint?: string; readonly data?: unknown }

export const GRANTS = [
  'role.launch',
  'task.create',
  'task.assign',
  'task.close',
  'task.read',
  'trail.read',
  'git.push.working',
  'review.request',
  'review.verdict',
] as const
export type Grant = (typeof GRANTS)[number]

export const MESSAGE_CLASSES = ['REQUEST', 'RESULT', 'NOTE'] as const
export type MessageClass = (typeof MESSAGE_CLASSES)[number]

/** Who acts. A session's identity is derived from its capability, never from what it says. */
export type Principal = { readonly kind: 'founder'; readonly name: string } | { readonly kind: 'host' } | SessionPrincipal

export interface SessionPrincipal {
  readonly kind: 'session'
  readonly business: string
  readonly role: string
  readonly instance: string
  readonly run: string
  readonly grants: ReadonlySet<Grant>
}

export const TRAIL_KINDS = [
  'host.started',
  'host.stopped',
  'session.started',
  'session.ended',
  'role.claimed',
  'role.released',
  'message.sent',
  'message.answered',
  'task.created',
  'task.assigned',
  'task.closed',
  'action.allowed',
  'action.denied',
  'review.requested',
  'review.verdict',
  'launch.refused',
  'config.reloaded',
  'override',
] as const
export type TrailKind = (typeof TRAIL_KINDS)[number]

export const LAUNCH_EVENTS = ['launch', 'refused', 'end', 'checkout-kept'] as const
export type LaunchEvent = (typeof LAUNCH_EVENTS)[number]

export const KEPT_REASONS = ['unreadable', 'hung', 'locked', 'in-progress', 'detached', 'branch', 'dirty', 'diverged', 'ahead'] as const
export type KeptReason = (typeof KEPT_REASONS)[number]

export const ENV_OUTCOMES = ['kept', 'created', 'reset', 'continued'] as const
export type EnvOutcome = (typeof ENV_OUTCOMES)[number]
