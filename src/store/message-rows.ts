import type { MessageState } from '../core/states.ts'
import type { MessageClass } from '../protocol/common.ts'
import type { MessageRow, OwedRow } from '../protocol/rows.ts'

/** A message as it lies in the table. */
export interface StoredMessage {
  readonly seq: number
  readonly at: string
  readonly from_role: string
  readonly from_instance: string
  readonly from_run: string | null
  readonly recipient: string
  readonly class: MessageClass
  readonly subject: string | null
  readonly body: string
  readonly in_reply_to: number | null
  readonly deadline: string | null
  readonly failed: number
  readonly state: MessageState
}

export const MESSAGE_COLUMNS = 'seq, at, from_role, from_instance, from_run, recipient, class, subject, body, in_reply_to, deadline, failed, state'

export type StoredOwed = Pick<StoredMessage, 'seq' | 'at' | 'from_instance' | 'recipient' | 'subject' | 'deadline'>
export const OWED_COLUMNS = 'seq, at, from_instance, recipient, subject, deadline'

export type StoredGiven = Pick<StoredMessage, 'seq' | 'from_instance' | 'recipient'> & { readonly deaths: number }

/** A REQUEST that is owed its answer, without its text. */
export type OwedMessage = Omit<OwedRow, 'overdue'>

const ID = /^m([1-9]\d{0,14})$/

export const toMessageId = (seq: number): string => `m${String(seq)}`

/** The row number of a message id; null when it is none. */
export function toMessageSeq(id: string): number | null {
  const digits = ID.exec(id)?.[1]
  return digits === undefined ? null : Number(digits)
}

export function toMessageRow(row: StoredMessage): MessageRow {
  const { at, from_role, from_instance, from_run, subject, body, deadline, state } = row
  const in_reply_to = row.in_reply_to === null ? null : toMessageId(row.in_reply_to)
  return {
    id: toMessageId(row.seq),
    at,
    from_role,
    from_instance,
    from_run,
    to: row.recipient,
    class: row.class,
    subject,
    body,
    in_reply_to,
    deadline,
    failed: row.failed === 1,
    state,
  }
}

export const toOwedMessage = ({ seq, at, from_instance: from, recipient: to, subject, deadline }: StoredOwed): OwedMessage => ({
  id: toMessageId(seq),
  at,
  from,
  to,
  subject,
  deadline,
})
