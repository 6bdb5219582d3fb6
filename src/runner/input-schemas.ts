import { z } from 'zod'
import { BUS_METHODS } from '../protocol/bus.ts'
import { fetchToolSchema, pushToolSchema } from '../protocol/git.ts'
import { launchToolSchema } from '../protocol/launch.ts'
import { TOOL_GRANTS, type ToolName } from '../protocol/tools.ts'
import { type BusTool, methodOf } from './tools.ts'

const toSchema = (schema: z.ZodType): unknown => z.toJSONSchema(schema, { io: 'input' })

/** The tools that are no method of the bus. */
const OWN_SCHEMAS = {
  launch: launchToolSchema,
  answer_later: z.strictObject({}),
  push: pushToolSchema,
  fetch: fetchToolSchema,
} as const satisfies Readonly<Record<Exclude<ToolName, BusTool>, z.ZodType>>

const isOwn = (name: ToolName): name is keyof typeof OWN_SCHEMAS => Object.hasOwn(OWN_SCHEMAS, name)
const schemaOf = (name: ToolName): unknown => toSchema(isOwn(name) ? OWN_SCHEMAS[name] : BUS_METHODS[methodOf(name)])

/** JSON Schema of each tool's arguments. The build puts the value in this module's place, so that no session loads zod. */
export const INPUT_SCHEMAS = Object.fromEntries((Object.keys(TOOL_GRANTS) as ToolName[]).map((name) => [name, schemaOf(name)])) as Readonly<
  Record<ToolName, unknown>
>
