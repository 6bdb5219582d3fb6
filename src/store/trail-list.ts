import type { Database } from 'better-sqlite3'
import type { TrailRow } from '../protocol/rows.ts'
import type { StoredRecord } from './chain.ts'
import { eachRow, keepPrepared } from './database.ts'

export interface TrailFilter {
  readonly subject?: string | undefined
  readonly kind?: string | undefined
  /** A run: what it did and what is about it. */
  readonly of?: string | undefined
  /** Only kinds that nobody but the host writes. */
  readonly reserved?: boolean | undefined
  /** Records after this number, oldest first. */
  readonly after?: number | undefined
  /** The last record that is looked at. */
  readonly through?: number | undefined
  readonly limit?: number | undefined
}

interface Stored extends StoredRecord {
  readonly hash: string
}

export const TRAIL_COLUMNS = 'seq, at, kind, subject, actor_kind, actor_name, actor_run, body, hash'
const LIST_LIMIT = 1000

type ActorKind = TrailRow['actor']['kind']
const isActorKind = (kind: string): kind is ActorKind => kind === 'founder' || kind === 'session' || kind === 'host'

function toRow(row: Stored): TrailRow {
  const kind = isActorKind(row.actor_kind) ? row.actor_kind : 'host'
  const actor = { kind, name: row.actor_name, run: row.actor_run }
  return { seq: row.seq, at: row.at, kind: row.kind, subject: row.subject, actor, body: JSON.parse(row.body) as TrailRow['body'], hash: row.hash }
}

/** Most records are of a message that was sent; the index of kinds leaves them out, and serves where a query says that it does not ask for them. */
const INDEXED_KINDS = " AND kind <> 'message.sent'"

function ofKind({ kind, subject, of }: TrailFilter): string {
  if (kind === undefined) return ''
  // a subject or a run says more than a kind: the plus keeps the index of kinds out of it
  if (subject !== undefined || of !== undefined) return ' AND +kind = @kind'
  return ` AND kind = +@kind${kind === 'message.sent' ? '' : INDEXED_KINDS}`
}

/** Only conditions that are asked for stand in the query, so that an index serves. */
function toWhere(filter: TrailFilter): string {
  const about = filter.subject === undefined ? '' : ' AND subject = @subject'
  const until = filter.through === undefined ? '' : ' AND seq <= @through'
  return `seq > @after${until}${about}${ofKind(filter)}${filter.reserved === true ? " AND kind NOT GLOB 'x.*'" : ''}`
}

type Params = Readonly<Record<string, string | number | null>>

function toParams({ subject, kind, of, after, through, limit }: TrailFilter): Params {
  return { subject: subject ?? null, kind: kind ?? null, of: of ?? null, after: after ?? 0, through: through ?? null, limit: limit ?? LIST_LIMIT }
}

/** Records that match, oldest first; the body of one that is not taken is not parsed. */
export function createTrailList(db: Database): (filter?: TrailFilter) => Iterable<TrailRow> {
  const prepare = keepPrepared<Stored>(db)
  const prepareSeqs = keepPrepared<number>(db)
  const bySeq = db.prepare<[number], Stored>(`SELECT ${TRAIL_COLUMNS} FROM trail WHERE seq = ?`)
  const at = (seq: number): TrailRow => {
    const row = bySeq.get(seq)
    if (row === undefined) throw new Error(`record ${String(seq)} is gone`)
    return toRow(row)
  }
  return (filter = {}) => {
    const where = toWhere(filter)
    if (filter.of === undefined)
      return eachRow(prepare(`SELECT ${TRAIL_COLUMNS} FROM trail WHERE ${where} ORDER BY seq LIMIT +@limit`), [toParams(filter)], toRow)
    // both parts are read from their index in the order of seq, and SQLite merges them
    const parts = ['actor_run', 'subject'].map((column) => `SELECT seq FROM trail WHERE ${where} AND ${column} = @of`)
    return eachRow(prepareSeqs(`${parts.join(' UNION ')} ORDER BY seq LIMIT +@limit`).pluck(), [toParams(filter)], at)
  }
}
