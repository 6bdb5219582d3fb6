import type { Database } from 'better-sqlite3'
import type { TrailRow } from '../protocol/rows.ts'
import type { StoredRecord } from './chain.ts'
import { keepPrepared } from './database.ts'

export interface TrailFilter {
  readonly subject?: string | undefined
  readonly kind?: string | undefined
  /** The run that acted. */
  readonly actorRun?: string | undefined
  /** Records after this number, oldest first. */
  readonly after?: number | undefined
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

/** Records that match, oldest first. */
export function createTrailList(db: Database): (filter?: TrailFilter) => TrailRow[] {
  const prepare = keepPrepared<Stored>(db)
  return (filter = {}) => {
    const { where, params } = toQuery(filter)
    const statement = prepare(`SELECT ${TRAIL_COLUMNS} FROM trail WHERE seq > ?${where} ORDER BY seq LIMIT +?`)
    return statement.all(filter.after ?? 0, ...params, filter.limit ?? LIST_LIMIT).map(toRow)
  }
}
