import type { Database } from 'better-sqlite3'
import { chainHash, GENESIS, hashText, type StoredRecord } from './chain.ts'

/** A place in the chain. */
export interface Link {
  readonly seq: number
  readonly hash: string
}

export interface TrailCheck {
  readonly ok: boolean
  /** The number of the first record that does not continue the chain. */
  readonly firstBad: number | null
  /** The last record that does, and its hash. */
  readonly records: number
  readonly head: string
}

export interface TrailVerifier {
  /** The last record as it lies on disk. */
  readonly last: () => Link
  /** Recomputes the chain after the record `from` (0: all of it), in slices between which the event loop runs. */
  readonly verify: (options?: { readonly from?: number; readonly signal?: AbortSignal }) => Promise<TrailCheck>
  /** The same for the last `records` records, at once. */
  readonly verifyTail: (records: number) => TrailCheck
}

interface Stored extends StoredRecord {
  readonly hash: string
}

interface Step {
  readonly reached: Link
  readonly bad: number | null
  readonly end: boolean
}

const START: Link = { seq: 0, hash: GENESIS }
const SLICE = 5000
/** Or so much text, where records are long: a slice holds everybody else up. */
const SLICE_LENGTH = 2 * 1024 * 1024
const HASH_LENGTH = GENESIS.length

/** The next link, if this text of a record (its hash, then its canonical row) continues the chain. */
function follow(previous: Link, text: string): Link | null {
  const seq = previous.seq + 1
  const hash = hashText(previous.hash + text.slice(HASH_LENGTH))
  return text.startsWith(hash) && text.startsWith(`[${String(seq)},`, HASH_LENGTH) ? { seq, hash } : null
}

/** Walks the chain: a slice of records after a link. */
function createStep(db: Database): (previous: Link) => Step {
  // one text a record, built by SQLite: three times as fast as its columns
  const texts = db
    .prepare<[number, number], string>(
      'SELECT hash || json_array(seq, at, kind, subject, actor_kind, actor_name, actor_run, json(body)) FROM trail WHERE seq > ? ORDER BY seq LIMIT +?',
    )
    .pluck()
  const next = db.prepare<[number], Stored>('SELECT * FROM trail WHERE seq > ? ORDER BY seq LIMIT 1')

  /** The last link of a slice that continues the chain; the same link when the next record does not, as its text shows it. */
  const walk = (previous: Link): Link => {
    let reached = previous
    let length = 0
    try {
      for (const text of texts.iterate(previous.seq, SLICE)) {
        const link = follow(reached, text)
        if (link === null) break
        reached = link
        length += text.length
        if (length > SLICE_LENGTH) break
      }
    } catch {
      // a body that is no JSON: the next step judges its record
    }
    return reached
  }
  /** The last word on one record is the definition itself, should SQLite ever write JSON in another way. */
  const judge = (previous: Link): Step => {
    const row = next.get(previous.seq)
    if (row === undefined) return { reached: previous, bad: null, end: true }
    const good = row.seq === previous.seq + 1 && chainHash(previous.hash, row) === row.hash
    return good ? { reached: row, bad: null, end: false } : { reached: previous, bad: row.seq, end: true }
  }
  return (previous) => {
    const reached = walk(previous)
    return reached === previous ? judge(previous) : { reached, bad: null, end: false }
  }
}

const toCheck = ({ reached, bad }: Step): TrailCheck => ({ ok: bad === null, firstBad: bad, records: reached.seq, head: reached.hash })

export function createTrailVerifier(db: Database): TrailVerifier {
  const last = db.prepare<[], Link>('SELECT seq, hash FROM trail ORDER BY seq DESC LIMIT 1')
  const linkAt = db.prepare<[number], Link>('SELECT seq, hash FROM trail WHERE seq = ?')
  const step = createStep(db)
  const before = (from: number): Link => (from <= 0 ? START : (linkAt.get(from) ?? START))
  return {
    last: () => last.get() ?? START,
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
