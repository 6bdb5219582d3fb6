import type { TrailRow } from '../protocol/rows.ts'
import { chainHash } from './chain.ts'
import { change, type TableContext } from './database.ts'
import { createTrailList, TRAIL_COLUMNS, type TrailFilter } from './trail-list.ts'
import { createTrailVerifier, type TrailVerifier } from './trail-verify.ts'

export interface TrailEntry {
  readonly kind: string
  readonly subject: string | null
  readonly actor: TrailRow['actor']
  /** Plain JSON data; it is hashed as JSON.stringify writes it. */
  readonly body: Readonly<Record<string, unknown>>
}

/** SQLite's text is UTF-8, which has no lone surrogates: they would come back as something else, and the hash would not match. */
const LONE_SURROGATE = /\p{Surrogate}/gu

export interface TrailTable extends Pick<TrailVerifier, 'verify'> {
  list(filter?: TrailFilter): Iterable<TrailRow>
  /** Appends a record; its place in the chain is final once the transaction is. */
  append(entry: TrailEntry): TrailRow
  /** Has a record after `after`, up to `through`, this hash? */
  holds(hash: string, after: number, through: number): boolean
  /** records is the number of the last record: they are numbered without a gap. */
  head(): { readonly records: number; readonly head: string }
}

export function createTrail(context: TableContext): TrailTable {
  const { db, tx, feed, stamp } = context
  const { last, verify } = createTrailVerifier(db)
  const insert = change(context, `INSERT INTO trail (${TRAIL_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`)
  const held = db.prepare<[number, number, string], number>('SELECT 1 FROM trail WHERE seq > ? AND seq <= ? AND hash = ?').pluck()
  let head = last()
  let pending = false

  /** The head is kept in memory; a transaction that is undone takes it back. */
  const remember = (): void => {
    if (pending) return
    pending = true
    const before = head
    tx.onCommit(() => (pending = false))
    tx.onRollback(() => {
      pending = false
      head = before
    })
  }
  const append = (entry: TrailEntry): TrailRow => {
    const { kind, actor } = entry
    const subject = entry.subject?.replace(LONE_SURROGATE, '\ufffd') ?? null
    const body = JSON.stringify(entry.body)
    const row = { seq: head.seq + 1, at: stamp(), kind, subject, actor_kind: actor.kind, actor_name: actor.name, actor_run: actor.run, body }
    const hash = chainHash(head.hash, row)
    insert(row.seq, row.at, kind, subject, actor.kind, actor.name, actor.run, body, hash)
    remember()
    head = { seq: row.seq, hash }
    const appended = { seq: row.seq, at: row.at, kind, subject, actor, body: entry.body, hash }
    feed.add({ table: 'trail', row: appended })
    return appended
  }
  return {
    append,
    list: createTrailList(db),
    verify,
    holds: (hash, after, through) => held.get(after, through, hash) !== undefined,
    head: () => ({ records: head.seq, head: head.hash }),
  }
}
