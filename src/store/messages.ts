import type { MessageState } from '../core/states.ts'
import type { MessageClass } from '../protocol/common.ts'
import type { MessageRow } from '../protocol/rows.ts'
import { change, eachRow, type SqlParam, type TableContext } from './database.ts'
import {
  MESSAGE_COLUMNS,
  type OwedMessage,
  OWED_COLUMNS,
  type StoredGiven,
  type StoredMessage,
  type StoredOwed,
  toMessageId,
  toMessageRow,
  toMessageSeq,
  toOwedMessage,
} from './message-rows.ts'

export interface NewMessage {
  readonly fromKind: 'founder' | 'session' | 'host'
  readonly fromRole: string
  readonly fromInstance: string
  readonly fromRun: string | null
  readonly to: string
  readonly class: MessageClass
  readonly subject: string | null
  readonly body: string
  readonly inReplyTo: string | null
  readonly deadline: string | null
  readonly failed: boolean
  /** The run and connection that waited for it: then it is born `delivered`. */
  readonly given: { readonly run: string; readonly connection: number } | null
}

/** What a run received, without its text. */
export interface GivenMessage {
  readonly id: string
  readonly from_instance: string
  readonly to: string
  readonly deaths: number
}

export interface MessagesTable {
  insert(message: NewMessage): MessageRow
  get(id: string): MessageRow | null
  /** To whom a message is. */
  recipientOf(id: string): string | null
  /** What waits for an instance, oldest first. */
  waiting(instance: string, limit: number): Iterable<MessageRow>
  setDelivered(id: string, given: { readonly run: string; readonly connection: number }): void
  setState(id: string, state: MessageState): void
  /** Marks as acknowledged what is not yet; false when there is nothing to mark. */
  acknowledge(id: string): boolean
  /** REQUESTs and NOTEs of a run that the recipient has not acknowledged, counted up to `limit`. */
  unread(to: string, fromRun: string, limit: number): number
  /** Gives back what a connection received and did not acknowledge; the number of messages. */
  requeueConnection(run: string, connection: number): number
  /** What a run received and did not acknowledge, whether its connection has closed or not. */
  givenTo(run: string): GivenMessage[]
  /** Gives a message back after its run ended. */
  requeue(id: string, deaths: number): void
  /** REQUESTs without a RESULT, oldest first, those after the given one; with an instance, those to and from it. */
  owed(instance: string | null, after: string | null): Iterable<OwedMessage>
  /** Those to an instance. */
  owedBy(instance: string): Iterable<OwedMessage>
  owedCount(): number
  /** The message's whole thread, oldest first: from the message that began it through all replies; those after the given one. */
  thread(id: string, after: string | null): Iterable<MessageRow>
  /** The RESULT of a REQUEST. */
  resultOf(id: string): MessageRow | null
  /** Messages to the founder, oldest first, those after the given one. */
  inbox(after: string | null): Iterable<MessageRow>
}

/** The REQUESTs that are still owed an answer. */
const OPEN = "class = 'REQUEST' AND state <> 'answered' AND state <> 'dead'"

type Changes = Pick<MessagesTable, 'insert' | 'setDelivered' | 'setState' | 'acknowledge' | 'requeueConnection' | 'requeue'>

const seqOf = (id: string): number => toMessageSeq(id) ?? -1

/** Parameters by position and no object spread: this is the row that every message pays for. */
function createInsert(context: TableContext): MessagesTable['insert'] {
  const { business, stamp } = context
  const insert = change(
    context,
    `INSERT INTO messages (business, at, from_kind, from_role, from_instance, from_run, recipient, class, subject, body, in_reply_to, deadline, failed, state, given_run, given_connection)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  )
  return ({ fromKind, fromRole, fromInstance, fromRun, to, class: kind, subject, body, inReplyTo, deadline, failed, given }) => {
    const at = stamp()
    const state = given === null ? 'accepted' : 'delivered'
    const reply = inReplyTo === null ? null : seqOf(inReplyTo)
    const [run, connection] = given === null ? [null, null] : [given.run, given.connection]
    // prettier-ignore
    const { lastInsertRowid } = insert(business, at, fromKind, fromRole, fromInstance, fromRun, to, kind, subject, body, reply, deadline, failed ? 1 : 0, state, run, connection)
    const id = toMessageId(Number(lastInsertRowid))
    // prettier-ignore
    return { id, at, from_role: fromRole, from_instance: fromInstance, from_run: fromRun, to, class: kind, subject, body, in_reply_to: inReplyTo, deadline, failed, state }
  }
}

function createChanges(context: TableContext): Changes {
  const setDelivered = change(context, "UPDATE messages SET state = 'delivered', given_run = ?, given_connection = ? WHERE seq = ? AND state = 'accepted'")
  const setState = change(context, 'UPDATE messages SET state = ? WHERE seq = ?')
  const acknowledge = change(context, "UPDATE messages SET state = 'acknowledged' WHERE seq = ? AND state IN ('accepted', 'delivered')")
  // the second condition on state is that of the index that serves
  const requeueConnection = change(
    context,
    "UPDATE messages SET state = 'accepted', given_connection = NULL WHERE given_run = ? AND given_connection = ? AND state = 'delivered' AND state IN ('accepted', 'delivered')",
  )
  const requeue = change(context, "UPDATE messages SET state = 'accepted', given_run = NULL, given_connection = NULL, deaths = ? WHERE seq = ?")
  return {
    insert: createInsert(context),
    setDelivered: (id, { run, connection }) => void setDelivered(run, connection, seqOf(id)),
    setState: (id, state) => void setState(state, seqOf(id)),
    acknowledge: (id) => acknowledge(seqOf(id)).changes === 1,
    requeueConnection: (run, connection) => requeueConnection(run, connection).changes,
    requeue: (id, deaths) => void requeue(deaths, seqOf(id)),
  }
}

type Questions = Pick<MessagesTable, 'get' | 'recipientOf' | 'waiting' | 'givenTo' | 'owed' | 'owedBy' | 'thread' | 'resultOf' | 'inbox'>

/** Where a list goes on. */
const seqAfter = (after: string | null): number => (after === null ? 0 : seqOf(after))

type Lists = Pick<MessagesTable, 'waiting' | 'owed' | 'owedBy' | 'thread' | 'inbox'>

function createLists({ db, business }: TableContext): Lists {
  const select = (rest: string): ((...params: SqlParam[]) => Iterable<MessageRow>) => {
    const statement = db.prepare<unknown[], StoredMessage>(`SELECT ${MESSAGE_COLUMNS} FROM messages ${rest}`)
    return (...params) => eachRow(statement, params, toMessageRow)
  }
  /** What is asked of a row before its text is, which has to be passed over to see how it stands. */
  const selectOwed = (whose: string): ((...params: SqlParam[]) => Iterable<OwedMessage>) => {
    const statement = db.prepare<unknown[], StoredOwed>(`SELECT ${OWED_COLUMNS} FROM messages WHERE business = ? AND seq > ? ${whose} AND ${OPEN} ORDER BY seq`)
    return (...params) => eachRow(statement, [business, ...params], toOwedMessage)
  }
  const waiting = select("WHERE business = ? AND recipient = +? AND state = 'accepted' ORDER BY seq LIMIT +?")
  const owed = selectOwed('')
  const owedOf = selectOwed('AND (recipient = +? OR from_instance = +?)')
  const owedBy = selectOwed('AND recipient = +?')
  const thread = select(
    `WHERE business = ? AND seq > ? AND seq IN (
       WITH RECURSIVE up (seq, parent) AS (
         SELECT seq, in_reply_to FROM messages WHERE seq = ?
         UNION ALL SELECT m.seq, m.in_reply_to FROM messages m JOIN up ON m.seq = up.parent
       ), down (seq) AS (
         SELECT seq FROM up WHERE parent IS NULL
         UNION ALL SELECT m.seq FROM messages m JOIN down ON m.in_reply_to = down.seq
       ) SELECT seq FROM down) ORDER BY seq`,
  )
  const inbox = select("WHERE business = ? AND recipient = 'founder' AND seq > ? ORDER BY seq")
  return {
    waiting: (instance, limit) => waiting(business, instance, limit),
    owed: (instance, after) => (instance === null ? owed(seqAfter(after)) : owedOf(seqAfter(after), instance, instance)),
    owedBy: (instance) => owedBy(0, instance),
    thread: (id, after) => thread(business, seqAfter(after), seqOf(id)),
    inbox: (after) => inbox(business, seqAfter(after)),
  }
}

function createQuestions(context: TableContext): Questions {
  const { db, business } = context
  const bySeq = db.prepare<[string, number], StoredMessage>(`SELECT ${MESSAGE_COLUMNS} FROM messages WHERE business = ? AND seq = ?`)
  const results = db.prepare<[string, number], StoredMessage>(
    `SELECT ${MESSAGE_COLUMNS} FROM messages WHERE business = ? AND in_reply_to = ? AND class = 'RESULT' LIMIT 1`,
  )
  const recipient = db.prepare<[string, number], string>('SELECT recipient FROM messages WHERE business = ? AND seq = ?').pluck()
  const given = db.prepare<[string], StoredGiven>(
    "SELECT seq, from_instance, recipient, deaths FROM messages WHERE given_run = ? AND state IN ('accepted', 'delivered') ORDER BY seq",
  )
  const found = (row: StoredMessage | undefined): MessageRow | null => (row === undefined ? null : toMessageRow(row))
  return {
    ...createLists(context),
    get: (id) => found(bySeq.get(business, seqOf(id))),
    resultOf: (id) => found(results.get(business, seqOf(id))),
    recipientOf: (id) => recipient.get(business, seqOf(id)) ?? null,
    givenTo: (run) => given.all(run).map(({ seq, from_instance, recipient: to, deaths }) => ({ id: toMessageId(seq), from_instance, to, deaths })),
  }
}

export function createMessages(context: TableContext): MessagesTable {
  const { db, business } = context
  const unread = db
    .prepare<[string, string, number], number>(
      "SELECT count(*) FROM (SELECT 1 FROM messages WHERE recipient = +? AND from_run = ? AND state IN ('accepted', 'delivered') AND from_run IS NOT NULL AND class <> 'RESULT' LIMIT +?)",
    )
    .pluck()
  const owedCount = db.prepare<[string], number>(`SELECT count(*) FROM messages WHERE business = ? AND ${OPEN}`).pluck()
  return {
    ...createChanges(context),
    ...createQuestions(context),
    unread: (to, fromRun, limit) => unread.get(to, fromRun, limit) ?? 0,
    owedCount: () => owedCount.get(business) ?? 0,
  }
}
