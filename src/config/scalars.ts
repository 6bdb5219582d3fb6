import { z } from 'zod'
import { parseDuration, parseSize } from '../core/duration.ts'
import { ID_LENGTH, ID_PATTERN, isId, RESERVED_IDS } from '../core/ids.ts'
import { isAnchored } from './paths.ts'

// A message that begins with `expected` gets what was found instead added to it (issues.ts).

/** setTimeout counts in 31 bits: anything longer would fire at once. */
const LONGEST_MS = 24 * 86_400_000
const DURATION = { pattern: '^\\d{1,9}(ms|s|m|h|d)$', examples: ['10m', '2h', '30d'] }

/** Why this name is no id; undefined when it is one. */
function idFault(name: string): string | undefined {
  if (RESERVED_IDS.includes(name)) return `${name} is reserved`
  if (!isId(name)) return `${JSON.stringify(name)} is no id: expected ${ID_PATTERN.source}, at most ${String(ID_LENGTH)} characters`
  return undefined
}
const withFault = (fault: (text: string) => string | undefined): z.core.CheckFn<string> => {
  return (payload) => {
    const message = fault(payload.value)
    if (message !== undefined) payload.issues.push({ code: 'custom', input: payload.value, message })
  }
}

/** A name that the file gives to a business, project, role or instance. */
export const idSchema = z.string().check(withFault(idFault)).meta({ pattern: ID_PATTERN.source, maxLength: ID_LENGTH })
/** What keeps this business file's name from being an id. */
export const businessFault = idFault

const founderFault = (name: string): string | undefined => (name === 'founder' ? undefined : idFault(name))
export const founderSchema = z.string().check(withFault(founderFault)).meta({ pattern: ID_PATTERN.source, maxLength: ID_LENGTH })

const isDuration = (text: string, fits: (ms: number) => boolean): boolean => {
  const ms = parseDuration(text)
  return ms !== undefined && fits(ms)
}
/** Any length of time, zero too. */
export const ageSchema = z
  .string('expected a duration such as 10m, 2h or 30d')
  .refine((text) => isDuration(text, () => true), 'expected a duration such as 10m, 2h or 30d')
  .meta(DURATION)
/** A time to wait: more than nothing, at most 24 days. */
export const timeoutSchema = z
  .string('expected a duration such as 10m or 2h')
  .refine((text) => isDuration(text, (ms) => ms > 0 && ms <= LONGEST_MS), 'expected a duration such as 10m or 2h, more than 0, at most 24d')
  .meta(DURATION)
/** A time to wait, or `none` for no limit. */
export const timeoutOrNoneSchema = z
  .string('expected a duration such as 2h, or none')
  .refine((text) => text === 'none' || isDuration(text, (ms) => ms > 0 && ms <= LONGEST_MS), 'expected a duration such as 2h (at most 24d), or none')
  .meta({ pattern: '^(none|\\d{1,9}(ms|s|m|h|d))$' })

const SIZE = 'expected a size such as 256M or 4G, more than 0'
const isSize = (value: string | number): boolean => (typeof value === 'number' ? Number.isSafeInteger(value) && value > 0 : (parseSize(value) ?? 0) > 0)
/** Bytes as a number, or with K, M, G, T. */
export const sizeSchema = z.union([z.string().meta({ pattern: '^\\d{1,12}[KMGT]?$' }), z.int()], SIZE).refine(isSize, SIZE)

export const pathSchema = z
  .string('expected an absolute path, or one that begins with ~/')
  .refine(isAnchored, 'expected an absolute path, or one that begins with ~/')
  .meta({ pattern: '^(/|~$|~/)' })

export const textSchema = z.string().min(1, 'expected some text')
export const lineSchema = z.string().regex(/^\P{Cc}+$/u, 'expected one line of text')
export const modelSchema = z.string().regex(/^[^\s\p{Cc}]+$/u, 'expected the name of a model')
export const patternSchema = z.string().regex(/^[^\s\p{Cc}]+$/u, 'expected a pattern of model names such as claude-opus-*')
export const wordSchema = z.string().regex(/^[A-Za-z0-9_][A-Za-z0-9_.:*-]*$/, 'expected a name')
export const variableSchema = z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'expected the name of an environment variable')
/** git-check-ref-format(1), and no leading dash: a branch is never an option. */
const BRANCH = /^(?![-/.])(?!.*(?:\.\.|@\{|\/[/.]|\.lock(?:\/|$)|[/.]$))[^\p{Cc} ~^:?*[\\]+$/u
export const branchSchema = z.string().regex(BRANCH, 'expected the name of a branch')
export const expirySchema = z
  .string()
  .refine((text) => /^\d{4}-\d\d-\d\d(T.+)?$/.test(text) && !Number.isNaN(Date.parse(text)), 'expected a date such as 2027-01-01, or an RFC 3339 time')

const DEEPEST = 64

/** Is it what JSON can hold? Depth is bounded: an anchor may hold itself. */
function isJson(value: unknown, depth = 0): boolean {
  if (depth > DEEPEST) return false
  if (Array.isArray(value)) return value.every((item) => isJson(item, depth + 1))
  if (typeof value === 'object' && value !== null) return Object.values(value).every((item) => isJson(item, depth + 1))
  return value === null || typeof value === 'string' || typeof value === 'boolean' || (typeof value === 'number' && Number.isFinite(value))
}
export const jsonSchema = z.unknown().refine((value) => isJson(value), 'expected what JSON can hold: maps, lists, text, finite numbers, true, false, null')
