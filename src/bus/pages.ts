import { PAGE_BYTES } from '../protocol/common.ts'

/** The most bytes that a JSON escape makes of one UTF-16 unit. */
const ESCAPED = 6
const SHORT = 1024

/** Bytes of a value as JSON: exact where it is large, and never too few. */
function sizeOf(value: unknown): number {
  if (typeof value === 'string') return value.length <= SHORT ? value.length * ESCAPED : Buffer.byteLength(JSON.stringify(value))
  return Buffer.byteLength(JSON.stringify(value))
}

/** Bytes of a row as JSON, its keys included. */
export const rowBytes = (row: object): number => Object.entries(row).reduce((sum, [key, value]) => sum + key.length + 4 + sizeOf(value ?? null), 2)

/** The rows from the front that fit into one page, at least one: the peer asks for the next ones after it. */
export function firstPage<Row extends object>(rows: readonly Row[]): Row[] {
  let bytes = 0
  const end = rows.findIndex((row, index) => {
    bytes += rowBytes(row)
    return bytes > PAGE_BYTES && index > 0
  })
  return end === -1 ? [...rows] : rows.slice(0, end)
}

/** The rows from the back that fit into one page, in their order: of a list without a cursor the oldest give way. */
export const lastPage = <Row extends object>(rows: readonly Row[]): Row[] => firstPage([...rows].reverse()).reverse()
