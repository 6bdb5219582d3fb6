import { z } from 'zod'
import { BODY_BYTES, bytesAtMost, LAUNCH_EVENTS, REQUEST_BYTES } from './common.ts'
import { BUS_METHODS, cursorSchema } from './bus.ts'
import { USAGE_BY } from './rows.ts'

const WAIT_MS = 60_000
const nameSchema = z.string().max(128)
const waitMsSchema = z.int().min(0).max(WAIT_MS).optional()
const durationMsSchema = z.int().min(0).max(86_400_000).optional()
const afterMessageSchema = BUS_METHODS['message.owed'].shape.after
const afterSchema = z.int().nonnegative().optional()
const limitSchema = z.int().min(1).max(1000).optional()

export const controlHelloSchema = z.strictObject({ protocol: z.int(), version: z.string().max(64) })

/** The founder's door: the bus methods as the founder, and these. `run` accepts a unique prefix. */
export const CONTROL_METHODS = {
  agents: BUS_METHODS.agents,
  'message.send': BUS_METHODS['message.send'],
  'message.ack': BUS_METHODS['message.ack'],
  'message.owed': BUS_METHODS['message.owed'],
  'message.show': z.strictObject({ id: nameSchema }),
  'message.thread': z.strictObject({ id: nameSchema, after: afterMessageSchema }),
  'task.create': BUS_METHODS['task.create'],
  'task.list': BUS_METHODS['task.list'],
  'task.show': BUS_METHODS['task.show'],
  'task.assign': BUS_METHODS['task.assign'],
  'task.close': z.strictObject({ task: nameSchema, reason: bytesAtMost(2048).optional(), override: z.boolean().optional(), dryRun: z.boolean().optional() }),
  'review.request': BUS_METHODS['review.request'],
  'review.list': BUS_METHODS['review.list'],
  'review.show': z.strictObject({ request: nameSchema }),
  'review.verdict': BUS_METHODS['review.verdict'],
  'push.list': z.strictObject({ task: nameSchema.optional(), after: cursorSchema('p', 'push').optional() }),
  'push.show': z.strictObject({ push: nameSchema }),
  'push.diff': z.strictObject({ push: nameSchema }),
  'task.fetchable': z.strictObject({ task: nameSchema, unapproved: z.boolean().optional() }),
  'repo.list': z.strictObject({}),
  'repo.sync': z.strictObject({ project: nameSchema.optional(), force: z.boolean().optional() }),
  'event.record': BUS_METHODS['event.record'],
  status: z.strictObject({}),
  ps: z.strictObject({ all: z.boolean().optional(), after: nameSchema.optional() }),
  show: z.strictObject({ run: nameSchema }),
  wait: z.strictObject({ run: nameSchema, waitMs: waitMsSchema }),
  launch: z.strictObject({
    instance: nameSchema,
    task: nameSchema.optional(),
    request: bytesAtMost(REQUEST_BYTES).optional(),
    mode: z.enum(['keep', 'fresh', 'continue']).optional(),
    run: nameSchema.optional(),
    discard: z.boolean().optional(),
    dryRun: z.boolean().optional(),
  }),
  stop: z.strictObject({
    run: nameSchema.optional(),
    instance: nameSchema.optional(),
    all: z.boolean().optional(),
    timeoutMs: durationMsSchema,
    dryRun: z.boolean().optional(),
  }),
  kill: z.strictObject({ run: nameSchema, dryRun: z.boolean().optional() }),
  pause: z.strictObject({ instance: nameSchema }),
  resume: z.strictObject({ instance: nameSchema }),
  logs: z.strictObject({ run: nameSchema }),
  transcript: z.strictObject({ run: nameSchema }),
  ask: z.strictObject({
    instance: nameSchema.optional(),
    body: bytesAtMost(BODY_BYTES).optional(),
    resume: nameSchema.optional(),
    deadline: BUS_METHODS['message.send'].shape.deadline,
    waitMs: waitMsSchema,
  }),
  inbox: z.strictObject({ after: afterMessageSchema, waitMs: waitMsSchema }),
  log: z.strictObject({
    event: z.enum(LAUNCH_EVENTS).optional(),
    code: z.string().max(64).optional(),
    after: afterSchema,
    limit: limitSchema,
    waitMs: waitMsSchema,
  }),
  'log.explain': z.strictObject({ seq: z.int().nonnegative() }),
  timeline: z.strictObject({ sinceMs: z.int().nonnegative().optional(), task: nameSchema.optional(), after: z.string().max(32).optional() }),
  trail: z.strictObject({ subject: nameSchema.optional(), kind: z.string().max(64).optional(), after: afterSchema, limit: limitSchema, waitMs: waitMsSchema }),
  'trail.head': z.strictObject({}),
  'trail.verify': z.strictObject({ head: z.string().max(64).optional() }),
  usage: z.strictObject({ by: z.enum(USAGE_BY).optional(), sinceMs: z.int().nonnegative().optional(), after: nameSchema.nullable().optional() }),
  reload: z.strictObject({}),
  shutdown: z.strictObject({ drainMs: durationMsSchema, timeoutMs: durationMsSchema }),
  'config.show': z.strictObject({}),
  'env.list': z.strictObject({}),
  'env.release': z.strictObject({ env: nameSchema, dryRun: z.boolean().optional() }),
  gc: z.strictObject({ apply: z.boolean().optional() }),
  backup: z.strictObject({}),
  events: z.strictObject({ after: afterSchema, waitMs: waitMsSchema }),
} as const
export type ControlMethod = keyof typeof CONTROL_METHODS
/** What a caller may write (defaults not yet filled in). */
export type ControlInput<M extends ControlMethod> = z.input<(typeof CONTROL_METHODS)[M]>
export type ControlParams<M extends ControlMethod> = z.infer<(typeof CONTROL_METHODS)[M]>
