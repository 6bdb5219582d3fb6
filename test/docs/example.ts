import { expect } from 'vitest'

/** What the names of an example stand for, as they are met. */
export type Bound = Map<string, unknown>

const NAME = /<([a-z-]+)>/g
const ANY = '…'
const isRecord = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null && !Array.isArray(value)
const textOf = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value))

/** A line to the host, its names replaced; a name that nobody has met yet stays. */
export const toRequest = (line: string, bound: Bound): string =>
  line.replace(NAME, (whole, name: string) => (bound.has(name) ? textOf(bound.get(name)) : whole))

/** A line from the host as JSON: a bare name or `…` becomes a text, `,…}` a key. */
export const toPattern = (line: string): unknown =>
  JSON.parse(line.replaceAll(/([,{])…(?=\})/g, '$1"…":"…"').replaceAll(/(?<=[:,[])(<[a-z-]+>|…)(?=[,}\]])/g, '"$1"'))

/** A text with names or `…` in it, as a pattern of what may stand there. */
function toRegExp(text: string, bound: Bound): RegExp {
  const escape = (part: string): string => part.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')
  const parts = toRequest(text, bound).split(ANY).map(escape)
  return new RegExp(`^${parts.join('.*')}$`, 's')
}

function assertText(pattern: string, actual: unknown, bound: Bound, at: string): void {
  if (pattern === ANY) return
  const name = /^<([a-z-]+)>$/.exec(pattern)?.[1]
  if (name !== undefined && !bound.has(name)) {
    expect(actual, at).toBeTruthy()
    bound.set(name, actual)
  } else if (name !== undefined) expect(actual, at).toEqual(bound.get(name))
  else expect(actual, at).toMatch(toRegExp(pattern, bound))
}

/** Fails unless `actual` has the shape of the pattern; learns what new names stand for. */
export function assertShape(pattern: unknown, actual: unknown, bound: Bound, at = 'the reply'): void {
  if (typeof pattern === 'string') assertText(pattern, actual, bound, at)
  else if (Array.isArray(pattern)) {
    const open = pattern.at(-1) === ANY
    const items = open ? pattern.slice(0, -1) : pattern
    expect(actual, at).toHaveLength(open && Array.isArray(actual) ? actual.length : items.length)
    for (const [index, item] of items.entries()) assertShape(item, (actual as unknown[])[index], bound, `${at}[${String(index)}]`)
  } else if (isRecord(pattern)) {
    const { [ANY]: open, ...fields } = pattern
    expect(isRecord(actual), `${at} is an object: ${JSON.stringify(actual)}`).toBe(true)
    const found = actual as Record<string, unknown>
    if (open === undefined) expect(Object.keys(found).sort(), `the keys of ${at}: ${JSON.stringify(actual)}`).toEqual(Object.keys(fields).sort())
    for (const [key, value] of Object.entries(fields)) assertShape(value, found[key], bound, `${at}.${key}`)
  } else expect(actual, at).toEqual(pattern)
}
