import { displayWidth, escapeLine, padEnd, truncate } from '../core/escape.ts'
import type { Output } from './context.ts'

type Cell = string | number | boolean | null | undefined

/** One value on one line; what is absent is `-`. */
export function toCell(value: unknown): string {
  if (value === null || value === undefined || value === '') return '-'
  if (typeof value === 'string') return escapeLine(value)
  return escapeLine(typeof value === 'number' || typeof value === 'boolean' ? String(value) : JSON.stringify(value))
}

const GAP = '  '
const LAST_COLUMN_AT_LEAST = 20

/** Aligned columns under a header on a terminal; elsewhere one row a line, tabs between, no header. */
export function table(out: Output, header: readonly string[], rows: readonly (readonly Cell[])[]): string {
  const cells = rows.map((row) => row.map(toCell))
  if (!out.terminal) return cells.map((row) => `${row.join('\t')}\n`).join('')
  if (cells.length === 0) return ''
  const widths = header.map((title, at) => Math.max(displayWidth(title), ...cells.map((row) => displayWidth(row[at] ?? ''))))
  const before = widths.slice(0, -1).reduce((sum, width) => sum + width + GAP.length, 0)
  const room = Math.max(LAST_COLUMN_AT_LEAST, out.columns - before)
  const toLine = (row: readonly string[]): string =>
    row.map((cell, at) => (at === row.length - 1 ? truncate(cell, room) : padEnd(cell, widths[at] ?? 0))).join(GAP)
  return [out.style('dim', toLine(header)), ...cells.map(toLine)].map((line) => `${line.trimEnd()}\n`).join('')
}

/** The fields of one thing, one a line. */
export function fields(out: Output, row: object): string {
  const entries = Object.entries(row).map(([name, value]) => [name, toCell(value)] as const)
  if (!out.terminal) return entries.map(([name, value]) => `${name}\t${value}\n`).join('')
  const width = Math.max(0, ...entries.map(([name]) => name.length))
  return entries.map(([name, value]) => `${out.style('dim', padEnd(name, width))}${GAP}${value}\n`).join('')
}

const MINUTE = 60_000

/** `4m`, `3h`, `12d`: how long ago, for a glance. */
export function ago(at: string | null, now = Date.now()): string {
  if (at === null) return '-'
  const ms = Math.max(0, now - Date.parse(at))
  if (ms < MINUTE) return `${String(Math.floor(ms / 1000))}s`
  if (ms < 60 * MINUTE) return `${String(Math.floor(ms / MINUTE))}m`
  if (ms < 48 * 60 * MINUTE) return `${String(Math.floor(ms / MINUTE / 60))}h`
  return `${String(Math.floor(ms / MINUTE / 60 / 24))}d`
}

/** `1.5M`: bytes in powers of 1024. */
export function size(bytes: number): string {
  let value = bytes
  let unit = 0
  while (value >= 1024 && unit < 4) {
    value /= 1024
    unit++
  }
  return unit === 0 ? String(bytes) : `${value.toFixed(value < 10 ? 1 : 0)}${'KMGT'.charAt(unit - 1)}`
}

/** `2026-01-31 09:00:00Z` of an RFC 3339 time: in UTC as everything is, and it says so. */
export const shortTime = (at: string): string =>
  escapeLine(at)
    .replace('T', ' ')
    .replace(/\.\d+Z$/, 'Z')

/** The text with a newline at its end, or nothing. */
export const block = (text: string): string => (text === '' || text.endsWith('\n') ? text : `${text}\n`)

/** As much of a commit's id as people are shown. */
export const shortOid = (oid: string): string => oid.slice(0, 12)
