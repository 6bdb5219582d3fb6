import { toTimestamp } from '../core/clock.ts'
import type { UsageBy, UsageRow } from '../protocol/rows.ts'
import { change, type TableContext } from './database.ts'

/** The tokens of one request to a model provider. */
export interface UsageEntry {
  readonly run: string
  readonly instance: string
  readonly role: string
  readonly task: string | null
  readonly family: string
  readonly model: string
  readonly inputTokens: number
  readonly outputTokens: number
  readonly cacheReadTokens: number
  readonly cacheWriteTokens: number
  /** false: the answer broke off, and more was used than it said. */
  readonly complete: boolean
}

export interface UsageTable {
  append(entry: UsageEntry): void
  /** Sums, the largest first. `sinceMs` is a wall-clock time. */
  sum(by: UsageBy, sinceMs?: number): UsageRow[]
}

const SUMS = `count(*) AS requests, count(*) - sum(complete) AS incomplete, sum(input_tokens) AS inputTokens, sum(output_tokens) AS outputTokens,
  sum(cache_read_tokens) AS cacheReadTokens, sum(cache_write_tokens) AS cacheWriteTokens`

export function createUsage(context: TableContext): UsageTable {
  const { db, business, stamp } = context
  const insert = change(
    context,
    `INSERT INTO usage (business, at, run, instance, role, task, family, model, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, complete)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  )
  return {
    append(entry) {
      const { run, instance, role, task, family, model, inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens, complete } = entry
      insert(business, stamp(), run, instance, role, task, family, model, inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens, complete ? 1 : 0)
    },
    sum: (by, sinceMs = 0) =>
      db
        .prepare<[string, string], UsageRow>(
          // `by` is one of five words, never what somebody typed
          `SELECT ${by} AS name, ${SUMS} FROM usage WHERE business = ? AND at >= ? GROUP BY ${by} ORDER BY inputTokens + outputTokens + cacheReadTokens + cacheWriteTokens DESC, name`,
        )
        .all(business, toTimestamp(sinceMs)),
  }
}
