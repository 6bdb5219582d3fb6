import { nearest } from '../config/nearest.ts'
import { parseDuration } from '../core/duration.ts'
import { AppError } from '../core/errors.ts'

/** A mistake on the command line: exit 2. Without a hint the verb's own help is it. */
export const toUsage = (message: string, hint?: string): AppError => new AppError('usage', message, hint === undefined ? {} : { hint })

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

const DAY_MS = 86_400_000

/** The same within a day, which is as long as the bus host waits for anything. */
export function patience(text: string): number {
  const ms = duration(text)
  if (ms > DAY_MS) throw toUsage(`${JSON.stringify(text)} is longer than a day, and nothing is waited for longer`, 'at most 24h')
  return ms
}

const RFC3339 = /^(\d{4})-(\d\d)-(\d\d)(?:[Tt ](\d\d):(\d\d):\d\d(?:\.\d+)?(?:[Zz]|[+-](\d\d):(\d\d)))?$/

/** RFC 3339, or a day, which begins at midnight UTC; NaN for what no calendar or clock has: Date.parse takes 30 February for 2 March. */
function parseTime(text: string): number {
  const match = RFC3339.exec(text)
  if (match === null) return Number.NaN
  // what is not given is 0
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, offsetHour = 0, offsetMinute = 0] = [...match].slice(1).map((part) => Number(part || 0))
  const isDay = new Date(Date.UTC(year, month - 1, day)).toISOString().startsWith(text.slice(0, 10))
  return isDay && hour < 24 && minute < 60 && offsetHour < 24 && offsetMinute < 60 ? Date.parse(text) : Number.NaN
}

/** A moment, as milliseconds since the epoch: RFC 3339, or a duration before `now`. */
export function moment(text: string, now = Date.now()): number {
  const ms = parseDuration(text)
  if (ms !== undefined) return Math.max(0, now - ms)
  const at = parseTime(text)
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

/** One of many words; the nearest is the hint. */
export function assertWord(text: string, words: readonly string[], list: string): void {
  if (words.includes(text)) return
  const near = nearest(text, words)
  throw toUsage(`there is no ${list} ${JSON.stringify(text)}`, near === undefined ? undefined : `did you mean ${near}?`)
}

/** A text that is to be read by somebody says something. */
export function assertText(text: string, what: string): void {
  if (text.trim() === '') throw toUsage(`${what} is empty`)
}
