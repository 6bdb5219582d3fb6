import type { z } from 'zod'
import { AppError } from '../core/errors.ts'

/** One sentence that names the key. */
function whyOf(issue: z.core.$ZodIssue | undefined): string {
  if (issue === undefined) return 'the parameters are not those of the method'
  const place = issue.path.map(String).join('.')
  if (issue.code === 'unrecognized_keys') return `${place === '' ? '' : `${place}: `}unknown key ${issue.keys.map((key) => JSON.stringify(key)).join(', ')}`
  return place === '' ? issue.message : `${place}: ${issue.message}`
}

/** The parameters of a method; throws `invalid-request` with a reason that names the key. */
export function parseParams<Schema extends z.ZodType>(schema: Schema, params: unknown): z.infer<Schema> {
  const parsed = schema.safeParse(params)
  if (parsed.success) return parsed.data
  throw new AppError('invalid-request', whyOf(parsed.error.issues[0]))
}
