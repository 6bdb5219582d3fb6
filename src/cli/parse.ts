import { parseDuration } from '../core/duration.ts'
import { AppError } from '../core/errors.ts'

/** A mistake on the command line: exit 2. */
export const toUsage = (message: string, hint = 'mosaic --help'): AppError => new AppError('usage', message, { hint })

/** `10m`, `90s` as milliseconds. */
export function duration(text: string): number {
  const ms = parseDuration(text)
  if (ms === undefined) throw toUsage(`${JSON.stringify(text)} is no duration`, 'a duration is a number and ms, s, m, h or d: 90s, 10m, 2h')
  return ms
}

/** A whole number from 0. */
export function integer(text: string): number {
  if (!/^\d{1,15}$/.test(text)) throw toUsage(`${JSON.stringify(text)} is no whole number`)
  return Number(text)
}

const RFC3339 = /^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(:\d\d(\.\d+)?)?([Zz]|[+-]\d\d:\d\d)$|^\d{4}-\d\d-\d\d$/

/** A moment, as milliseconds since the epoch: RFC 3339, or a duration before `now`. */
export function moment(text: string, now = Date.now()): number {
  const ms = parseDuration(text)
  if (ms !== undefined) return Math.max(0, now - ms)
  const at = RFC3339.test(text) ? Date.parse(text) : Number.NaN
  if (Number.isNaN(at)) throw toUsage(`${JSON.stringify(text)} is no time`, 'a time is 10m, 2h, 7d or RFC 3339: 2026-01-31T09:00:00Z')
  return at
}

/** A moment to come: RFC 3339, or a duration from now on; as RFC 3339. */
export function deadline(text: string): string {
  const ms = parseDuration(text)
  return new Date(ms === undefined ? moment(text) : Date.now() + ms).toISOString()
}

/** One of these words, and nothing else. */
export const oneOf =
  (words: readonly string[]) =>
  (text: string): string => {
    if (!words.includes(text)) throw toUsage(`${JSON.stringify(text)} is none of ${words.join(', ')}`)
    return text
  }
