import type { Clock } from '../core/clock.ts'
import { AppError } from '../core/errors.ts'
import type { BusParams } from '../protocol/bus.ts'
import type { Principal } from '../protocol/common.ts'
import type { MessageRow, OwedRow } from '../protocol/rows.ts'
import { type BrokerContext, nameOf } from './context.ts'
import { firstPage } from './pages.ts'
import type { OwedMessage } from './ports.ts'
import { waitFor, type WaitOptions } from './wait-for.ts'

/** What can be asked about messages. */
export interface Mailbox {
  /** REQUESTs without RESULT, to and from the principal; of the founder, everybody's. Oldest first, after a message. */
  owed(principal: Principal, params: BusParams<'message.owed'>): OwedRow[]
  owedCount(): number
  show(id: string): MessageRow
  /** The thread that a message belongs to, oldest first, after a message of it. */
  thread(id: string, after?: string): MessageRow[]
  /** What was sent to the founder, oldest first, after a message. */
  inbox(params: { readonly after?: string | undefined } & WaitOptions): Promise<MessageRow[]>
  /** The RESULT of a REQUEST; null when there is none within waitMs. */
  result(id: string, options: WaitOptions): Promise<MessageRow | null>
}

/** A page of it is small for its bytes: to see how a REQUEST stands, its text has to be passed over. */
const OWED_ROWS = 200

function* atMost<Row>(rows: Iterable<Row>, limit: number): Generator<Row> {
  let left = limit
  for (const row of rows) {
    yield row
    if (--left === 0) return
  }
}

export const messageNotFound = (id: string): AppError => new AppError('message-not-found', `no message has the id ${JSON.stringify(id)}`)

const toOwed = (row: OwedMessage, clock: Clock): OwedRow => ({ ...row, overdue: row.deadline !== null && Date.parse(row.deadline) < clock.now() })

export function createMailbox({ store, clock }: Pick<BrokerContext, 'store' | 'clock'>): Mailbox {
  const { messages } = store
  const show = (id: string): MessageRow => {
    const row = messages.get(id)
    if (row === null) throw messageNotFound(id)
    return row
  }
  const inbox: Mailbox['inbox'] = async ({ after, waitMs, signal }) => {
    const look = (): MessageRow[] | null => {
      const rows = firstPage(messages.inbox(after ?? null))
      return rows.length === 0 ? null : rows
    }
    return (await waitFor(store, look, { waitMs, signal })) ?? []
  }
  return {
    show,
    inbox,
    thread: (id, after) => firstPage(messages.thread(show(id).id, after ?? null)),
    owed(principal, { after }) {
      const of = principal.kind === 'founder' ? null : nameOf(principal)
      return firstPage(atMost(messages.owed(of, after ?? null), OWED_ROWS)).map((row) => toOwed(row, clock))
    },
    owedCount: () => messages.owedCount(),
    result: (id, options) => waitFor(store, () => messages.resultOf(show(id).id), options),
  }
}
