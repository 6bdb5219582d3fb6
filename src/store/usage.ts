import { toTimestamp } from '../core/clock.ts'
import type { UsageBy, UsageRow } from '../protocol/rows.ts'
import { change, keepPrepared, type TableContext } from './database.ts'

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
  /** Sums in the order of their names, the one of no name first; the event loop runs meanwhile. `sinceMs` is a wall-clock time. */
  sum(by: UsageBy, sinceMs?: number): Promise<UsageRow[]>
}

const SUMS = `count(*) AS requests, count(*) - sum(complete) AS incomplete, sum(input_tokens) AS inputTokens, sum(output_tokens) AS outputTokens,
  sum(cache_read_tokens) AS cacheReadTokens, sum(cache_write_tokens) AS cacheWriteTokens`

/** So many requests are summed at once: about a millisecond. */
const SLICE = 2000

const add = (one: UsageRow | undefined, other: UsageRow): UsageRow =>
  one === undefined
    ? other
    : {
        name: other.name,
        requests: one.requests + other.requests,
        incomplete: one.incomplete + other.incomplete,
        inputTokens: one.inputTokens + other.inputTokens,
        outputTokens: one.outputTokens + other.outputTokens,
        cacheReadTokens: one.cacheReadTokens + other.cacheReadTokens,
        cacheWriteTokens: one.cacheWriteTokens + other.cacheWriteTokens,
      }

const byName = ({ name: a }: UsageRow, { name: b }: UsageRow): number => ((a ?? '') < (b ?? '') ? -1 : 1)

function createSum({ db, business }: TableContext): UsageTable['sum'] {
  const prepare = keepPrepared<UsageRow>(db)
  const last = db.prepare<[], number>('SELECT coalesce(max(seq), 0) FROM usage').pluck()
  return async (by, sinceMs = 0) => {
    // `by` is one of five words, never what somebody typed
    const slice = prepare(`SELECT ${by} AS name, ${SUMS} FROM usage WHERE seq > ? AND seq <= ? AND +business = ? AND at >= ? GROUP BY ${by}`)
    const since = toTimestamp(sinceMs)
    const sums = new Map<string | null, UsageRow>()
    const end = last.get() ?? 0
    for (let after = 0; after < end; after += SLICE) {
      for (const row of slice.all(after, after + SLICE, business, since)) sums.set(row.name, add(sums.get(row.name), row))
      await new Promise(setImmediate)
    }
    return [...sums.values()].sort(byName)
  }
}

export function createUsage(context: TableContext): UsageTable {
  const { business, stamp } = context
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
    sum: createSum(context),
  }
}
