import { hash } from 'node:crypto'

/** h(0), the hash before the first record. */
export const GENESIS = '0'.repeat(64)

/** A record as it lies in the table; `body` is JSON text. */
export interface StoredRecord {
  readonly seq: number
  readonly at: string
  readonly kind: string
  readonly subject: string | null
  readonly actor_kind: string
  readonly actor_name: string
  readonly actor_run: string | null
  readonly body: string
}

/**
 * The canonical row: the JSON array, without white space,
 * `[seq,at,kind,subject,actor.kind,actor.name,actor.run,body]`, as ECMAScript's JSON.stringify writes it, where body is
 * the stored JSON text of the record's body. Of a row of `mosaic trail --json` it is
 * `JSON.stringify([seq, at, kind, subject, actor.kind, actor.name, actor.run, body])`.
 */
export function canonicalRow(row: StoredRecord): string {
  const head = JSON.stringify([row.seq, row.at, row.kind, row.subject, row.actor_kind, row.actor_name, row.actor_run])
  return `${head.slice(0, -1)},${row.body}]`
}

/** h(n) = SHA-256 of the UTF-8 bytes of h(n-1), as 64 lower-case hex digits, followed by the canonical row; h(0) is 64 zeros. */
export const chainHash = (previous: string, row: StoredRecord): string => hashText(previous + canonicalRow(row))

/** SHA-256 of a text's UTF-8 bytes, in lower-case hex. */
export const hashText = (text: string): string => hash('sha256', text, 'hex')
