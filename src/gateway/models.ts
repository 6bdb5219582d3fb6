import { AppError } from '../core/errors.ts'

const refuse = (why: string): never => {
  throw new AppError('invalid-request', why)
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return refuse('the body is no JSON')
  }
}

function decode(body: Buffer): string {
  try {
    return utf8.decode(body)
  } catch {
    return refuse('the body is no UTF-8 text')
  }
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> => typeof value === 'object' && value !== null && !Array.isArray(value)

/** Where the string that begins at `start` ends, its closing quote included. */
function endOfString(text: string, start: number): number {
  for (let at = text.indexOf('"', start + 1); at !== -1; at = text.indexOf('"', at + 1)) {
    let backslashes = 0
    while (text.charCodeAt(at - 1 - backslashes) === 0x5c) backslashes++
    if (backslashes % 2 === 0) return at + 1
  }
  return text.length
}

const AFTER_SPACE = /[ \t\r\n]*/y

function isKey(text: string, end: number): boolean {
  AFTER_SPACE.lastIndex = end
  AFTER_SPACE.test(text)
  return text.charCodeAt(AFTER_SPACE.lastIndex) === 0x3a
}

/** Does an object name `model` twice? Of those some parsers take the first, others the last. `text` is valid JSON. */
function namesModelTwice(text: string): boolean {
  const named: boolean[] = []
  for (let at = 0; at < text.length; at++) {
    const char = text.charCodeAt(at)
    if (char === 0x7b) named.push(false)
    else if (char === 0x7d) named.pop()
    else if (char === 0x22) {
      const end = endOfString(text, at)
      if (isKey(text, end) && JSON.parse(text.slice(at, end)) === 'model') {
        if (named.at(-1) === true) return true
        named[named.length - 1] = true
      }
      at = end - 1
    }
  }
  return false
}

/** The models of tools that ask another one at the provider. */
const modelsOfTools = (tools: unknown): unknown[] => (Array.isArray(tools) ? tools.filter(isObject).flatMap(({ model }) => model ?? []) : [])

/**
 * Every model that a request's body names, its own first. Throws `invalid-request` when the body is no JSON object with one model,
 * or one that another parser could read otherwise.
 */
export function modelsOf(body: Buffer): readonly [string, ...string[]] {
  const text = decode(body)
  const request = parse(text)
  if (!isObject(request)) return refuse('the body is no JSON object')
  if (Object.keys(request).some((key) => key !== 'model' && key.toLowerCase() === 'model')) refuse('the body spells model in another way')
  const { model } = request
  if (typeof model !== 'string') return refuse('the body names no model')
  const more = modelsOfTools(request.tools)
  if (!more.every((name) => typeof name === 'string')) return refuse('the model of a tool is no name')
  if (namesModelTwice(text)) refuse('the body names model twice')
  return [model, ...more]
}
