import { z } from 'zod'
import { isObject } from '../core/objects.ts'
import { suggestion, nearest } from './nearest.ts'
import type { KeyPath, Source } from './source.ts'
import type { ConfigProblem } from './problem.ts'

/** A mistake at a key, before its place in the file is looked up. */
export interface Finding {
  readonly path: KeyPath
  /** What is wrong: the key itself, its value, or that the key is not there. */
  readonly at: 'key' | 'value' | 'missing'
  readonly message: string
  /** The path that was probably meant by an unknown key. */
  readonly meant?: KeyPath | undefined
}

const dotted = (path: KeyPath): string => path.map(String).join('.')

/** Findings with their places; a missing key stands at the key of the map that lacks it. */
export function toProblems(source: Source, findings: readonly Finding[]): ConfigProblem[] {
  const meant = new Set(findings.flatMap((finding) => (finding.meant === undefined ? [] : [dotted(finding.meant)])))
  // a mistyped key is one mistake, not an unknown and a missing one
  return findings
    .filter((finding) => finding.at !== 'missing' || !meant.has(dotted(finding.path)))
    .map(({ path, at, message }) => {
      const place = at === 'missing' ? source.place(path.slice(0, -1), 'key') : source.place(path, at)
      return { file: source.file, line: place?.line ?? 1, column: place?.column ?? 1, path: dotted(path), message }
    })
}

const NOUNS: Readonly<Record<string, string>> = {
  string: 'text',
  number: 'a number',
  int: 'an integer',
  boolean: 'true or false',
  object: 'a map',
  record: 'a map',
  array: 'a list',
}
const listed = (values: readonly unknown[]): string => (values.length === 1 ? String(values[0]) : `one of ${values.map(String).join(', ')}`)

/** What was expected, in our words; a schema's own message goes before it. */
function expectation(issue: z.core.$ZodRawIssue): string {
  if (issue.code === 'invalid_type') return `expected ${NOUNS[issue.expected] ?? issue.expected}`
  if (issue.code === 'invalid_value') return `expected ${listed(issue.values)}`
  return 'expected another value'
}

/** The value at a path and whether its key is there; own keys only. */
function lookUp(data: unknown, path: KeyPath): { readonly present: boolean; readonly value: unknown } {
  let value = data
  for (const name of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return { present: false, value: undefined }
    value = (value as Readonly<Record<string | number, unknown>>)[name]
  }
  return { present: true, value }
}

const LONGEST_SHOWN = 40

function shown(value: unknown): string {
  if (value === null) return 'nothing'
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'object') return 'a map'
  const text = JSON.stringify(value)
  return text.length > LONGEST_SHOWN ? `${text.slice(0, LONGEST_SHOWN)}…` : text
}

/** What people put there may be a secret: it is never repeated. */
const isPrivate = (path: KeyPath): boolean => path.includes('credentials') || path.includes('env')

function describeValue(data: unknown, path: KeyPath, issue: z.core.$ZodIssue): Finding {
  const { present, value } = lookUp(data, path)
  if (!present) return { path, at: 'missing', message: `missing key ${String(path.at(-1))}: ${issue.message}` }
  const got = issue.message.startsWith('expected') && !isPrivate(path) ? `, got ${shown(value)}` : ''
  const choice = issue.code === 'invalid_value' && typeof value === 'string' ? nearest(value, issue.values.map(String)) : undefined
  return { path, at: 'value', message: `${issue.message}${got}${choice === undefined ? '' : `; did you mean ${choice}?`}` }
}

const unwrap = (schema: z.core.$ZodType | undefined): z.core.$ZodType | undefined => {
  if (schema instanceof z.core.$ZodOptional || schema instanceof z.core.$ZodDefault || schema instanceof z.core.$ZodPrefault)
    return unwrap(schema._zod.def.innerType)
  return schema
}

/** The schema of the value at a path. */
function schemaAt(schema: z.core.$ZodType, path: KeyPath): z.core.$ZodType | undefined {
  let current = unwrap(schema)
  for (const name of path) {
    if (current instanceof z.core.$ZodObject) current = unwrap(current._zod.def.shape[String(name)])
    else if (current instanceof z.core.$ZodRecord) current = unwrap(current._zod.def.valueType)
    else if (current instanceof z.core.$ZodArray) current = unwrap(current._zod.def.element)
    else return undefined
  }
  return current
}

function describeUnknown(schema: z.core.$ZodType, parent: KeyPath, key: string): Finding {
  const path = [...parent, key]
  if (parent.at(-2) === 'credentials')
    return { path, at: 'key', message: `unknown key ${key}; a credential is given by reference (env or file), never as a literal` }
  const object = schemaAt(schema, parent)
  const keys = object instanceof z.core.$ZodObject ? Object.keys(object._zod.def.shape) : []
  const best = nearest(key, keys)
  return { path, at: 'key', message: `unknown key ${key}${suggestion(key, keys)}`, meant: best === undefined ? undefined : [...parent, best] }
}

/** Zod leaves the value under a bad key unread: it is checked here. */
function describeKey(schema: z.core.$ZodType, data: unknown, path: KeyPath, message: string): Finding[] {
  const inner = schemaAt(schema, path)
  const below = inner === undefined ? [] : findings(inner, lookUp(data, path).value)
  return [{ path, at: 'key', message }, ...below.map((finding) => ({ ...finding, path: [...path, ...finding.path] }))]
}

function describe(schema: z.core.$ZodType, data: unknown, issue: z.core.$ZodIssue): Finding[] {
  const path = issue.path.map((name) => (typeof name === 'symbol' ? String(name) : name))
  if (issue.code === 'unrecognized_keys') return issue.keys.filter((key) => key !== '__proto__').map((key) => describeUnknown(schema, path, key))
  if (issue.code === 'invalid_key') return describeKey(schema, data, path, issue.issues[0]?.message ?? issue.message)
  return [describeValue(data, path, issue)]
}

function findings(schema: z.core.$ZodType, data: unknown): Finding[] {
  const result = z.core.safeParse(schema, data, { error: expectation })
  return result.success ? [] : toFindings(schema, data, result.error)
}

const toFindings = (schema: z.core.$ZodType, data: unknown, error: z.core.$ZodError): Finding[] =>
  error.issues.flatMap((issue) => describe(schema, data, issue))

export type Shape<T> = { readonly value: T; readonly findings: readonly [] } | { readonly value: null; readonly findings: readonly Finding[] }

/** Checks a file's data against its schema: the value, or everything that is wrong with it. */
export function checkShape<S extends z.ZodType>(schema: S, data: unknown): Shape<z.output<S>> {
  if (!isObject(data)) return { value: null, findings: [{ path: [], at: 'value', message: `expected a map of keys, got ${shown(data)}` }] }
  const result = schema.safeParse(data, { error: expectation })
  return result.success ? { value: result.data, findings: [] } : { value: null, findings: toFindings(schema, data, result.error) }
}
