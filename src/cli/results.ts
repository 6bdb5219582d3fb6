import type { CliContext, Result } from './context.ts'
import { fields } from './render.ts'

/** A list: rows for programs, a table for people, one id a line for -q. */
export function listResult<Row>(rows: readonly Row[], idOf: (row: Row) => string, human: (rows: readonly Row[]) => string): Result {
  return { data: rows, human: () => human(rows), ids: rows.map(idOf) }
}

/** One thing, field by field. */
export function rowResult(context: CliContext, row: object, id?: string): Result {
  return { data: row, human: () => fields(context.out, row), ...(id === undefined ? {} : { ids: [id] }) }
}

/** An act that worked: its row for programs, one line for people. */
export function doneResult(data: unknown, line: string, id?: string): Result {
  return { data, human: () => line, ...(id === undefined ? {} : { ids: [id] }) }
}
