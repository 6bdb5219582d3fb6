import type { Clock } from '../core/clock.ts'
import { AppError } from '../core/errors.ts'
import type { Principal } from '../protocol/common.ts'
import type { MessageRow, OwedRow } from '../protocol/rows.ts'
import { type BrokerContext, nameOf } from './context.ts'
import { firstPage, lastPage } from './pages.ts'
import { waitFor, type WaitOptions } from './wait-for.ts'

/** What can be asked about messages. */
export interface Mailbox {
  /** REQUESTs without RESULT, to and from the principal; of the founder, everybody's. */
  owed(principal: Principal): OwedRow[]
  owedCount(): number
  show(id: string): MessageRow
  /** The whole thread that a message belongs to, oldest first. */
  thread(id: string): MessageRow[]
  /** What was sent to the founder: after a message, or without one the latest page. */
  inbox(params: { readonly after?: string | undefined } & WaitOptions): Promise<MessageRow[]>
  /** The RESULT of a REQUEST; null when there is none within waitMs. */
  result(id: string, options: WaitOptions): Promise<MessageRow | null>
}

const LIST_LIMIT = 1000

export const messageNotFound = (id: string): AppError => new AppError('message-not-found', `no message has the id ${JSON.stringify(id)}`)

function toOwed(row: MessageRow, clock: Clock): OwedRow {
  const { id, at, to, subject, deadline } = row
  return { id, at, from: row.from_instance, to, subject, deadline, overdue: deadline !== null && Date.parse(deadline) < clock.now() }
}

export function createMailbox({ store, clock }: Pick<BrokerContext, 'store' | 'clock'>): Mailbox {
  const { messages } = store
  const show = (id: string): MessageRow => {
    const row = messages.get(id)
    if (row === null) throw messageNotFound(id)
    return row
  }
  const inbox: Mailbox['inbox'] = async ({ after, waitMs, signal }) => {
    const look = (): MessageRow[] | null => {
      const rows = messages.inbox(after ?? null, LIST_LIMIT)
      return rows.length === 0 ? null : rows
    }
    const rows = (await waitFor(store, look, { waitMs, signal })) ?? []
    return after === undefined ? lastPage(rows) : firstPage(rows)
  }
  return {
    show,
    inbox,
    thread: (id) => firstPage(messages.thread(show(id).id, LIST_LIMIT)),
    owed(principal) {
      const of = principal.kind === 'founder' ? null : nameOf(principal)
      return firstPage(messages.owed(of, LIST_LIMIT).map((row) => toOwed(row, clock)))
    },
    owedCount: () => messages.owedCount(),
    result: (id, options) => waitFor(store, () => messages.resultOf(show(id).id), options),
  }
}
