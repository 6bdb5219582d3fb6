import { AppError } from '../core/errors.ts'
import { suggestion } from './nearest.ts'
import { toJsonSchema } from './schema.ts'
import { selectBusiness } from './select.ts'
import type { KeyPath, Place } from './source.ts'
import type { Config, SourceOf } from './types.ts'

/** One effective value and what set it. */
export interface Explained {
  readonly key: string
  readonly value: unknown
  /** null when no file sets it: `origin` says what does. */
  readonly file: string | null
  readonly line: number | null
  readonly origin: 'file' | 'default' | '--data-root' | '$MOSAIC_DATA'
}

const hasKeys = (value: unknown): value is Readonly<Record<string, unknown>> => typeof value === 'object' && value !== null

interface ObjectSchema {
  readonly properties?: Readonly<Record<string, ObjectSchema>>
  /** Of a record: what each of its values is. */
  readonly additionalProperties?: ObjectSchema | false
}

const schemaAt = (schema: ObjectSchema | undefined, name: string): ObjectSchema | undefined => {
  const own = schema?.properties
  if (own !== undefined && Object.hasOwn(own, name)) return own[name]
  return schema?.additionalProperties === false ? undefined : schema?.additionalProperties
}

/** The value at a path; null for a key of the contract that nothing sets and that has no default. */
function valueAt(effective: unknown, path: readonly string[], key: string, kind: 'system' | 'business'): unknown {
  let schema: ObjectSchema | undefined = (toJsonSchema().$defs as Readonly<Record<string, ObjectSchema>>)[kind]
  let value = effective
  for (const [at, name] of path.entries()) {
    const isKnown = Object.hasOwn(schema?.properties ?? {}, name)
    if (at === path.length - 1 && isKnown && hasKeys(value) && value[name] === undefined) return null
    value = step(value, name, key)
    schema = schemaAt(schema, name)
  }
  return value
}

function step(value: unknown, name: string, key: string): unknown {
  if (hasKeys(value) && Object.hasOwn(value, name)) return value[name]
  const keys = hasKeys(value) ? Object.keys(value) : []
  throw new AppError('key-not-found', `the configuration has no key ${key}: unknown ${name}${suggestion(name, keys)}`, { hint: 'mosaic config show' })
}

function found(key: string, value: unknown, from: SourceOf<unknown>, place: Place | undefined): Explained {
  if (place === undefined) return { key, value, file: null, line: null, origin: 'default' }
  return { key, value, file: from.source.file, line: place.line, origin: 'file' }
}

const isModelOfRole = (path: KeyPath): boolean => path.length === 4 && path[0] === 'roles' && path[2] === 'vars' && path[3] === 'model'

function explainBusiness(config: Config, key: string, path: readonly string[], id: string | undefined): Explained {
  const business = config.sources.businesses.get(selectBusiness(config, id).id)
  if (business === undefined) throw new Error('a configured business has its source')
  const value = valueAt(business.effective, path, key, 'business')
  const place = business.source.place(path, 'key')
  const { system } = config.sources
  // a role without a model has the system file's
  return place === undefined && isModelOfRole(path) ? found(key, value, system, system.source.place(['model'], 'key')) : found(key, value, business, place)
}

/**
 * Explains a dotted key (`launch.max.opus`, `roles.pm.vars.limits.turnTimeout`, `dataRoot`): its effective value in the files' words and
 * the file and line that set it. Throws `key-not-found`, `usage` for no key; for a business's key `business-ambiguous` and `business-not-found` too.
 */
export function explainKey(config: Config, key: string, business?: string): Explained {
  if (key === '') throw new AppError('usage', 'the key is empty', { hint: 'mosaic config explain launch.max.opus' })
  const path = key.split('.')
  const { system, dataRoot } = config.sources
  const isSystemKey = Object.hasOwn(system.effective, path[0] ?? '')
  if (!isSystemKey) return explainBusiness(config, key, path, business)
  const value = valueAt(system.effective, path, key, 'system')
  if (key === 'dataRoot' && dataRoot !== 'system.yaml') return { key, value, file: null, line: null, origin: dataRoot }
  return found(key, value, system, system.source.place(path, 'key'))
}

const SECRET_NAME = /token|secret|passw|credential|private|api_?key|auth/i

/** Values that look like secrets by their name, as `***`; credentials are references and stay. */
function redact(value: unknown, name = ''): unknown {
  if (Array.isArray(value)) return value.map((item) => redact(item, name))
  if (typeof value !== 'object' || value === null) return SECRET_NAME.test(name) && value !== null ? '***' : value
  const entries = Object.entries(value)
  return Object.fromEntries(entries.map(([key, inner]) => [key, key === 'credentials' ? inner : redact(inner, key)]))
}

/** The effective configuration in the files' words, for people and programs to read; secrets in `env` and `resources` redacted by name. */
export function showConfig(config: Config, business?: string): Readonly<Record<string, unknown>> {
  const { system, businesses } = config.sources
  const chosen = business === undefined ? [...businesses.keys()] : [selectBusiness(config, business).id]
  return { system: redact(system.effective), businesses: Object.fromEntries(chosen.map((id) => [id, redact(businesses.get(id)?.effective)])) }
}

/** The files that were read, system.yaml first. */
export const configFiles = (config: Config): string[] => [
  config.sources.system.source.file,
  ...[...config.sources.businesses.values()].map(({ source }) => source.file),
]
