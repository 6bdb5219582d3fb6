import { z } from 'zod'
import { escapeLine } from '../core/escape.ts'
import { BODY_BYTES, bytesAtMost, capabilitySchema, MESSAGE_CLASSES, oidSchema } from './common.ts'

const SUBJECT_CHARACTERS = 200
const NAME_CHARACTERS = 128
const WAIT_MS = 60_000

const nameSchema = z.string().max(NAME_CHARACTERS)
const messageIdSchema = z.string().min(1).max(NAME_CHARACTERS)
/** The id of the last row that the peer has of a list whose rows are numbered. */
export const cursorSchema = (letter: 'm' | 'p' | 'q', noun: string) => z.string().regex(new RegExp(`^${letter}[1-9]\\d{0,14}$`), `it is the id of a ${noun}`)
const afterMessageSchema = cursorSchema('m', 'message').optional()
/** Whatever takes no room or moves a cursor is not printable, as where it is shown: the joiner inside an emoji, too, but not what asks for its coloured form. */
const lineSchema = (noun: string) =>
  z
    .string()
    .max(SUBJECT_CHARACTERS)
    .refine((text) => escapeLine(text) === text, `a ${noun} is one line of printable characters, without any of zero width`)
const subjectSchema = lineSchema('subject')
const bodySchema = bytesAtMost(BODY_BYTES)
const waitMsSchema = z.int().min(0).max(WAIT_MS)
const pageSchema = { after: z.int().nonnegative().optional(), limit: z.int().min(1).max(1000).optional() }

export const helloSchema = z.strictObject({ cap: capabilitySchema, protocol: z.int() })

export const messageSendSchema = z.strictObject({
  to: nameSchema,
  class: z.enum(MESSAGE_CLASSES),
  body: bodySchema,
  in_reply_to: messageIdSchema.optional(),
  subject: subjectSchema.optional(),
  deadline: z.iso.datetime({ offset: true }).optional(),
  failed: z.boolean().optional(),
})
export type MessageSend = z.infer<typeof messageSendSchema>

export const taskCreateSchema = z.strictObject({
  id: nameSchema.optional(),
  title: lineSchema('title').refine((text) => /[^\s\ufe0f]/.test(text), 'a title is not empty'),
  body: bodySchema.default(''),
  project: nameSchema.optional(),
  assignee: nameSchema.optional(),
})
export type TaskCreate = z.infer<typeof taskCreateSchema>

/** `at` is the host's to say. */
const transcriptEntrySchema = z.looseObject({ event: z.string().max(64), at: z.never().optional() })

/** Every method of the bus socket with the schema of its parameters. `hello` is the first frame and stands apart. */
export const BUS_METHODS = {
  'role.claim': z.strictObject({}),
  'role.release': z.strictObject({}),
  agents: z.strictObject({}),
  'message.send': messageSendSchema,
  'message.receive': z.strictObject({ waitMs: waitMsSchema.optional(), max: z.int().min(1).max(100).optional() }),
  'message.ack': z.strictObject({ ids: z.array(messageIdSchema).max(200) }),
  'message.owed': z.strictObject({ after: afterMessageSchema }),
  'session.stop': z.strictObject({ instance: nameSchema }),
  'session.wait': z.strictObject({ waitMs: waitMsSchema.optional() }),
  'task.create': taskCreateSchema,
  'task.list': z.strictObject({ state: z.enum(['open', 'closed']).optional(), after: nameSchema.optional() }),
  'task.show': z.strictObject({ task: nameSchema }),
  'task.assign': z.strictObject({ task: nameSchema, instance: nameSchema }),
  'task.close': z.strictObject({ task: nameSchema, reason: bytesAtMost(2048).optional() }),
  'review.request': z.strictObject({ task: nameSchema }),
  'review.list': z.strictObject({
    task: nameSchema.optional(),
    state: z.enum(['open', 'approved', 'rejected', 'stale']).optional(),
    after: cursorSchema('q', 'review request').optional(),
  }),
  'review.verdict': z.strictObject({ request: nameSchema, commit: oidSchema, verdict: z.enum(['approve', 'reject']), note: bytesAtMost(8192).default('') }),
  trail: z.strictObject({ subject: nameSchema.optional(), kind: z.string().max(64).optional(), ...pageSchema }),
  'event.record': z.strictObject({ kind: z.string().max(64), subject: nameSchema.optional(), body: z.record(z.string(), z.unknown()).default({}) }),
  'transcript.append': z.strictObject({ entries: z.array(transcriptEntrySchema).max(200) }),
} as const
export type BusMethod = keyof typeof BUS_METHODS
export type BusParams<M extends BusMethod> = z.infer<(typeof BUS_METHODS)[M]>

/** The answer of `session.wait`: the host's word to a runner; `{}` when the wait ended without one. */
export interface SessionWord {
  readonly end?: 'turn-timeout' | 'idle-timeout' | 'run-timeout'
  readonly pause?: boolean
}
