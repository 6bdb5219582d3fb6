import type { Database, RunResult, Statement } from 'better-sqlite3'
import { type Clock, toTimestamp } from '../core/clock.ts'
import type { Feed } from './feed.ts'
import type { Transactions } from './transactions.ts'

/** What every family of tables works with. */
export interface TableContext {
  readonly db: Database
  readonly tx: Transactions
  readonly feed: Pick<Feed, 'add'>
  /** Rows of the tables below `sessions` belong to one business; others of the same data root stay unseen. */
  readonly business: string
  /** The wall clock as a timestamp. */
  readonly stamp: () => string
}

export type SqlValue = string | number | null
/** By position, or all of them by name in one object. */
export type SqlParam = SqlValue | Readonly<Record<string, SqlValue>>

/*
 * Why statements say `LIMIT +?`, and `+?` beside a column that a partial index compares with a constant: the planner looks at what is bound to
 * a plain parameter there, and prepares the statement anew at each call, which costs ten times as much as to run it.
 */

/** A prepared statement that changes rows. */
export function change({ db, tx }: TableContext, sql: string): (...params: SqlParam[]) => RunResult {
  const statement = db.prepare<SqlParam[]>(sql)
  return (...params) => {
    tx.touch()
    return statement.run(...params)
  }
}

/**
 * The rows of a statement as they are asked for: who stops reads no more, and what was not asked for is not made. Until then the connection is
 * taken: they are read within one turn of the event loop, and nothing is written in between.
 */
export function* eachRow<Stored, Row>(statement: Statement<unknown[], Stored>, params: readonly SqlParam[], toRow: (stored: Stored) => Row): Generator<Row> {
  for (const stored of statement.iterate(...params)) yield toRow(stored)
}

/** For statements that are put together at each call, in few shapes: each is prepared once, which costs more than to run it. */
export function keepPrepared<Row>(db: Database): (sql: string) => Statement<unknown[], Row> {
  const prepared = new Map<string, Statement<unknown[], Row>>()
  return (sql) => {
    const statement = prepared.get(sql) ?? db.prepare<unknown[], Row>(sql)
    prepared.set(sql, statement)
    return statement
  }
}

/** Timestamps come in bursts of one millisecond, and each costs a formatting. */
export function createStamp(clock: Clock): () => string {
  let lastMs = Number.NaN
  let text = ''
  return () => {
    const nowMs = clock.now()
    if (nowMs !== lastMs) {
      lastMs = nowMs
      text = toTimestamp(nowMs)
    }
    return text
  }
}
