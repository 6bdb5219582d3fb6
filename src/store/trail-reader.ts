import type { Database } from 'better-sqlite3'
import type { TrailRow } from '../protocol/rows.ts'
import { chainHash, GENESIS, type StoredRecord } from './chain.ts'

export interface TrailFilter {
  readonly subject?: string | undefined
  readonly kind?: string | undefined
  /** The run that acted. */
  readonly actorRun?: string | undefined
  /** Records after this number, oldest first. */
  readonly after?: number | undefined
  readonly limit?: number | undefined
}

export interface TrailCheck {
  readonly ok: boolean
  /** The number of the first record that does not continue the chain. */
  readonly firstBad: number | null
  /** The last record that does, and its hash. */
  readonly records: number
  readonly head: string
}

export interface TrailReader {
  list(filter?: TrailFilter): TrailRow[]
  /** The last record as it lies on disk. */
  last(): Link
  /** Recomputes the chain after the record `from` (0: all of it), in slices between which the event loop runs. */
  verify(options?: { readonly from?: number; readonly signal?: AbortSignal }): Promise<TrailCheck>
  /** The same for the last `records` records, at once. */
  verifyTail(records: number): TrailCheck
}

/** A place in the chain. */
export interface Link {
  readonly seq: number
  readonly hash: string
}

interface Stored extends StoredRecord {
  readonly hash: string
}

export const TRAIL_COLUMNS = 'seq, at, kind, subject, actor_kind, actor_name, actor_run, body, hash'
const START: Link = { seq: 0, hash: GENESIS }
const SLICE = 5000
const LIST_LIMIT = 1000

type ActorKind = TrailRow['actor']['kind']
const isActorKind = (kind: string): kind is ActorKind => kind === 'founder' || kind === 'session' || kind === 'host'

function toRow(row: Stored): TrailRow {
  const kind = isActorKind(row.actor_kind) ? row.actor_kind : 'host'
  const actor = { kind, name: row.actor_name, run: row.actor_run }
  return { seq: row.seq, at: row.at, kind: row.kind, subject: row.subject, actor, body: JSON.parse(row.body) as TrailRow['body'], hash: row.hash }
}

/** Messages are most of the trail; the index of kinds leaves them out, and serves where a query says that it asks for none of them. */
const isIndexedKind = (kind: string | undefined): boolean => kind !== undefined && kind !== 'message.sent' && kind !== 'message.answered'
const INDEXED_KINDS = " AND kind <> 'message.sent' AND kind <> 'message.answered'"

/** Only conditions that are asked for stand in the query, so that an index serves each of them. */
function toQuery(filter: TrailFilter): { readonly where: string; readonly params: readonly string[] } {
  const asked = [
    ['subject = ?', filter.subject],
    ['kind = ?', filter.kind],
    ['actor_run = ?', filter.actorRun],
  ] as const
  const given = asked.flatMap(([sql, value]) => (value === undefined ? [] : [{ sql, value }]))
  const where = given.map(({ sql }) => ` AND ${sql}`).join('')
  return { where: where + (isIndexedKind(filter.kind) ? INDEXED_KINDS : ''), params: given.map(({ value }) => value) }
}

const follows = (previous: Link, row: Stored): boolean => row.seq === previous.seq + 1 && chainHash(previous.hash, row) === row.hash

interface Step {
  readonly reached: Link
  readonly bad: number | null
  readonly end: boolean
}

const toCheck = ({ reached, bad }: Step): TrailCheck => ({ ok: bad === null, firstBad: bad, records: reached.seq, head: reached.hash })

export function createTrailReader(db: Database): TrailReader {
  const last = db.prepare<[], Link>('SELECT seq, hash FROM trail ORDER BY seq DESC LIMIT 1')
  const linkAt = db.prepare<[number], Link>('SELECT seq, hash FROM trail WHERE seq = ?')
  const slice = db.prepare<[number, number], Stored>(`SELECT ${TRAIL_COLUMNS} FROM trail WHERE seq > ? ORDER BY seq LIMIT ?`)

  const before = (from: number): Link => (from <= 0 ? START : (linkAt.get(from) ?? START))
  const step = (previous: Link): Step => {
    const rows = slice.all(previous.seq, SLICE)
    let reached = previous
    for (const row of rows) {
      if (!follows(reached, row)) return { reached, bad: row.seq, end: true }
      reached = row
    }
    return { reached, bad: null, end: rows.length < SLICE }
  }
  return {
    last: () => last.get() ?? START,
    list(filter = {}) {
      const { where, params } = toQuery(filter)
      const statement = db.prepare<unknown[], Stored>(`SELECT ${TRAIL_COLUMNS} FROM trail WHERE seq > ?${where} ORDER BY seq LIMIT ?`)
      return statement.all(filter.after ?? 0, ...params, filter.limit ?? LIST_LIMIT).map(toRow)
    },
    async verify({ from = 0, signal } = {}) {
      let done = step(before(from))
      while (!done.end) {
        await new Promise(setImmediate)
        signal?.throwIfAborted()
        done = step(done.reached)
      }
      return toCheck(done)
    },
    verifyTail(records) {
      let done = step(before((last.get() ?? START).seq - records))
      while (!done.end) done = step(done.reached)
      return toCheck(done)
    },
  }
}
