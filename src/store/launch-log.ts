import type { LaunchEvent } from '../protocol/common.ts'
import type { LogRow } from '../protocol/rows.ts'
import { change, eachRow, keepPrepared, type TableContext } from './database.ts'

export interface LaunchLogEntry {
  readonly event: LaunchEvent
  readonly run: string | null
  readonly instance: string
  /** The fields of this event beside run and instance; `code` can be filtered by. */
  readonly fields: Readonly<Record<string, unknown>>
}

export interface LaunchLogFilter {
  readonly event?: LaunchEvent | undefined
  readonly code?: string | undefined
  readonly after?: number | undefined
  readonly limit?: number | undefined
}

export interface LaunchLogTable {
  append(entry: LaunchLogEntry): number
  /** Records the one end of a run; false when it has one already, whoever wrote it. */
  appendEnd(entry: Omit<LaunchLogEntry, 'event' | 'run'> & { readonly run: string }): boolean
  list(filter?: LaunchLogFilter): Iterable<LogRow>
  get(seq: number): LogRow | null
}

interface Stored {
  readonly seq: number
  readonly at: string
  readonly event: LaunchEvent
  readonly run: string | null
  readonly instance: string
  readonly fields: string
}

const LIST_LIMIT = 1000

const toRow = ({ fields, ...row }: Stored): LogRow => ({ ...(JSON.parse(fields) as Record<string, unknown>), ...row })

const codeOf = (fields: Readonly<Record<string, unknown>>): string | null => (typeof fields.code === 'string' ? fields.code : null)

export function createLaunchLog(context: TableContext): LaunchLogTable {
  const { db, feed, stamp } = context
  const values = '(at, event, run, instance, code, fields) VALUES (?, ?, ?, ?, ?, ?)'
  const insert = change(context, `INSERT INTO launch_log ${values}`)
  const insertEnd = change(context, `INSERT INTO launch_log ${values} ON CONFLICT DO NOTHING`)
  const columns = 'seq, at, event, run, instance, fields'
  const prepare = keepPrepared<Stored>(db)
  const get = db.prepare<[number], Stored>(`SELECT ${columns} FROM launch_log WHERE seq = ?`)
  /** The number of the new row; null: there is one already. */
  const add = (into: typeof insert, { event, run, instance, fields }: LaunchLogEntry): number | null => {
    const at = stamp()
    const { changes, lastInsertRowid } = into(at, event, run, instance, codeOf(fields), JSON.stringify(fields))
    if (changes === 0) return null
    const seq = Number(lastInsertRowid)
    feed.add({ table: 'launch_log', row: { ...fields, seq, at, event, run, instance } })
    return seq
  }
  return {
    append: (entry) => add(insert, entry) ?? 0,
    appendEnd: (entry) => add(insertEnd, { ...entry, event: 'end' }) !== null,
    list(filter = {}) {
      const asked = [filter.event, filter.code] as const
      const where = ['event = +?', 'code = ?'].filter((_sql, index) => asked[index] !== undefined).map((sql) => ` AND ${sql}`)
      const params = asked.filter((value) => value !== undefined)
      const statement = prepare(`SELECT ${columns} FROM launch_log WHERE seq > ?${where.join('')} ORDER BY seq LIMIT +?`)
      return eachRow(statement, [filter.after ?? 0, ...params, filter.limit ?? LIST_LIMIT], toRow)
    },
    get(seq) {
      const row = get.get(seq)
      return row === undefined ? null : toRow(row)
    },
  }
}
