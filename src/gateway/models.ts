import { isUtf8 } from 'node:buffer'
import { setImmediate } from 'node:timers/promises'
import { AppError } from '../core/errors.ts'
import { createJsonScan, type JsonVisitor } from './json-scan.ts'

const refuse = (why: string): never => {
  throw new AppError('invalid-request', why)
}

/** At most a millisecond of reading, then everybody else's turn: many bodies may be read at a time. */
const SLICE_BYTES = 16 * 1024
const MAX_MODEL_BYTES = 1024
const MAX_TOOL_MODELS = 64
/** `"model"` with each of its letters as `\u006d`: a longer key cannot be it. */
const MAX_KEY_BYTES = 2 + 5 * 6

/** Where in a request an object or array stands. A tool may ask another model at the provider. */
type Place = 'request' | 'tools' | 'tool' | 'elsewhere'

interface Level {
  readonly place: Place
  /** The key whose value comes next, where it is one that counts. */
  key: string | null
  readonly named: { model: boolean; tools: boolean }
}

interface Found {
  model: string | null
  readonly ofTools: Set<string>
}

function placeOf(parent: Level | undefined, kind: 'object' | 'array'): Place {
  if (kind === 'array') return parent?.place === 'request' && parent.key === 'tools' ? 'tools' : 'elsewhere'
  if (parent === undefined) return 'request'
  return parent.place === 'tools' ? 'tool' : 'elsewhere'
}

const COUNTED = ['model', 'tools'] as const
const NULL = Buffer.from('null')
const NO_MODEL = 'the body names no model'
const NO_NAME = 'the model of a tool is no name'

/**
 * The key when it is one that counts, however it is escaped. Of a key given twice some parsers take the first, others the last, and some
 * take a key in another case: none of that passes where it would decide.
 */
function keyOf(level: Level, raw: Buffer): string | null {
  if (raw.length > MAX_KEY_BYTES) return null
  const key = JSON.parse(raw.toString('utf8')) as string
  const counted = COUNTED.find((name) => name === key.toLowerCase())
  if (counted === undefined) return null
  if (counted !== key) return level.place === 'elsewhere' ? null : refuse(`the body spells ${counted} in another way`)
  if (level.named[counted] && (counted === 'model' || level.place === 'request')) refuse(`the body names ${counted} twice`)
  level.named[counted] = true
  return key
}

function nameIn(raw: Buffer, otherwise: string): string {
  if (raw[0] !== 0x22) return refuse(otherwise)
  if (raw.length > MAX_MODEL_BYTES) return refuse(`the name of a model is longer than ${String(MAX_MODEL_BYTES)} bytes`)
  return JSON.parse(raw.toString('utf8')) as string
}

function addToolModel({ ofTools }: Found, raw: Buffer): void {
  if (raw.equals(NULL)) return
  ofTools.add(nameIn(raw, NO_NAME))
  if (ofTools.size > MAX_TOOL_MODELS) refuse(`the tools name more than ${String(MAX_TOOL_MODELS)} models`)
}

function createVisitor(bytes: Buffer, found: Found): JsonVisitor {
  const levels: Level[] = []
  return {
    opened(kind) {
      const parent = levels.at(-1)
      if (parent?.key === 'model' && parent.place !== 'elsewhere') refuse(parent.place === 'request' ? NO_MODEL : NO_NAME)
      if (parent === undefined && kind === 'array') refuse('the body is no JSON object')
      levels.push({ place: placeOf(parent, kind), key: null, named: { model: false, tools: false } })
    },
    closed: () => void levels.pop(),
    key(start, end) {
      const level = levels.at(-1)
      if (level !== undefined) level.key = keyOf(level, bytes.subarray(start, end))
    },
    scalar(start, end) {
      const level = levels.at(-1)
      if (level === undefined) refuse('the body is no JSON object')
      if (level?.key !== 'model') return
      if (level.place === 'request') found.model = nameIn(bytes.subarray(start, end), NO_MODEL)
      else if (level.place === 'tool') addToolModel(found, bytes.subarray(start, end))
    },
  }
}

/**
 * Every model that a request's body names, its own first. Throws `invalid-request` when the body is no JSON object with one model,
 * or one that another parser could read otherwise. The body may be as big as it may be and made to be slow to read: it is never
 * parsed as a whole, and others have their turn meanwhile. Throws `timeout` when `signal` aborts.
 */
export async function modelsOf(body: Buffer, signal?: AbortSignal): Promise<readonly [string, ...string[]]> {
  if (!isUtf8(body)) refuse('the body is no UTF-8 text')
  const found: Found = { model: null, ofTools: new Set() }
  const scan = createJsonScan(body, createVisitor(body, found))
  for (let end = SLICE_BYTES; end < body.length; end += SLICE_BYTES) {
    scan.to(end)
    await setImmediate()
    if (signal?.aborted === true) throw new AppError('timeout', 'the exchange took too long or its session ended')
  }
  scan.to(body.length)
  scan.finish()
  return [found.model ?? refuse(NO_MODEL), ...found.ofTools]
}
