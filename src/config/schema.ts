import { z } from 'zod'
import { GRANTS } from '../protocol/common.ts'
import {
  ageSchema,
  branchSchema,
  expirySchema,
  founderSchema,
  idSchema,
  jsonSchema,
  lineSchema,
  modelSchema,
  pathSchema,
  patternSchema,
  sizeSchema,
  textSchema,
  timeoutOrNoneSchema,
  timeoutSchema,
  variableSchema,
  wordSchema,
} from './scalars.ts'

// The files as people write them: nothing is converted here, defaults are filled in as text, and the JSON Schema is the same thing.

const versionSchema = z.literal(1)
const countSchema = z.int('expected an integer').min(1, 'expected an integer of at least 1')

const harnessSchema = z.strictObject({
  bin: pathSchema.optional(),
  version: textSchema.optional(),
  paths: z.array(pathSchema).default([]),
  models: z.array(modelSchema).default([]),
})

const systemLimitsSchema = z.strictObject({
  prepareTimeout: timeoutSchema.default('5m'),
  brokerTries: countSchema.default(30),
  brokerRetry: timeoutSchema.default('1s'),
  pushBytes: sizeSchema.default('256M'),
  pushUnpacked: sizeSchema.default('512M'),
  pushObjects: countSchema.default(200_000),
})

/** system.yaml */
export const systemFileSchema = z.strictObject({
  version: versionSchema,
  founder: founderSchema,
  dataRoot: pathSchema.optional(),
  model: modelSchema,
  families: z.record(idSchema, z.array(patternSchema)).default({}),
  harnesses: z.record(idSchema, harnessSchema).default({}),
  keepRuns: ageSchema.default('30d'),
  sandbox: z.strictObject({ bwrap: pathSchema.optional() }).prefault({}),
  limits: systemLimitsSchema.prefault({}),
})
export type SystemFile = z.output<typeof systemFileSchema>

const projectSchema = z.strictObject({
  root: pathSchema,
  branch: branchSchema.default('main'),
  resources: jsonSchema.default({}),
})

const roleLimitsSchema = z.strictObject({
  tools: z.array(wordSchema).default([]),
  memory: sizeSchema.optional(),
  // threads count, of builds too: room for any of them, none for a fork bomb
  pids: countSchema.default(1024),
  cpus: z.number().gt(0, 'expected a number above 0').optional(),
  turnTimeout: timeoutSchema.default('30m'),
  idleTimeout: timeoutOrNoneSchema.optional(),
  runTimeout: timeoutOrNoneSchema.optional(),
  turnsPerHour: countSchema.default(60),
  enforce: z.enum(['available', 'required']).default('available'),
})

const BY_REFERENCE = 'a credential is given by reference, { env: NAME } or { file: PATH }, never as a literal'
const credentialSchema = z
  .strictObject({ env: variableSchema.optional(), file: pathSchema.optional(), expires: expirySchema.optional() }, BY_REFERENCE)
  .refine(({ env, file }) => (env === undefined) !== (file === undefined), 'a credential names exactly one of env and file')

const roleSchema = z.strictObject({
  grants: z.array(z.enum(GRANTS)).default([]),
  vars: z.strictObject({ harness: idSchema.default('script'), model: modelSchema.optional(), limits: roleLimitsSchema.prefault({}) }).prefault({}),
  prompt: textSchema.optional(),
  network: z.enum(['none', 'host']).default('none'),
  networkReason: lineSchema.optional(),
  env: z.record(variableSchema, z.string()).default({}),
  credentials: z.record(wordSchema, credentialSchema).default({}),
})

const launchSchema = z.strictObject({
  by: z.string().optional(),
  instances: z.array(z.string()).default([]),
  max: z.record(z.string(), z.int('expected an integer').min(0, 'expected an integer of at least 0')).default({}),
})

/** businesses/<id>.yaml */
export const businessFileSchema = z.strictObject({
  version: versionSchema,
  projects: z.record(idSchema, projectSchema).default({}),
  roles: z.record(idSchema, roleSchema),
  instances: z.record(idSchema, z.strictObject({ role: z.string() })).default({}),
  launch: launchSchema.prefault({}),
})
export type BusinessFile = z.output<typeof businessFileSchema>

/** One JSON Schema document (draft 2020-12); `$defs.system` is system.yaml, `$defs.business` a file of businesses/. */
export function toJsonSchema(): Readonly<Record<string, unknown>> {
  const define = (schema: z.ZodType): Record<string, unknown> => {
    const { $schema: _, ...definition } = z.toJSONSchema(schema, { io: 'input', target: 'draft-2020-12' })
    return definition
  }
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'Mosaic configuration',
    description: 'system.yaml is $defs/system, businesses/<id>.yaml is $defs/business',
    anyOf: [{ $ref: '#/$defs/system' }, { $ref: '#/$defs/business' }],
    $defs: { system: define(systemFileSchema), business: define(businessFileSchema) },
  }
}
