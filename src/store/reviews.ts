import type { ReviewRow } from '../protocol/rows.ts'
import { change, eachRow, keepPrepared, type TableContext } from './database.ts'

export interface Verdict {
  readonly verdict: 'approve' | 'reject'
  readonly reviewer: string
  readonly note: string
}

export interface ReviewFilter {
  readonly task?: string | undefined
  readonly state?: ReviewRow['state'] | undefined
  /** An instance: what it asked for or judged, and what is about its tasks and pushes. */
  readonly of?: string | undefined
  /** The id of a request: those that were made after it. */
  readonly after?: string | undefined
}

/** An approving verdict, whatever was pushed since. */
export interface Approval {
  readonly task: string
  readonly project: string
  readonly commit: string
}

export interface ReviewsTable {
  insert(request: { readonly push: string; readonly requestedBy: string }): ReviewRow
  get(request: string): ReviewRow | null
  /** The request for this push that has no verdict. */
  openOf(push: string): ReviewRow | null
  judge(request: string, verdict: Verdict): void
  /** Oldest first, in slices of requests that were looked at: no index knows how a request stands, or whose it is. */
  list(filter?: ReviewFilter): Iterable<Iterable<ReviewRow>>
  /** The last push of a task whose last verdict approves it. */
  approvedPush(task: string): string | null
  /** The last approval of each task. */
  approvals(): Approval[]
}

interface Stored {
  readonly seq: number
  readonly at: string
  readonly task: string
  readonly push_seq: number
  readonly commit_oid: string
  readonly requested_by: string
  readonly verdict: 'approve' | 'reject' | null
  readonly reviewer: string | null
  readonly note: string | null
  readonly state: ReviewRow['state']
}

const STATE = `CASE WHEN p.seq <> (SELECT max(seq) FROM pushes WHERE task_seq = p.task_seq) THEN 'stale'
  WHEN r.verdict IS NULL THEN 'open' WHEN r.verdict = 'approve' THEN 'approved' ELSE 'rejected' END`
const FROM = 'FROM review_requests r JOIN pushes p ON p.seq = r.push_seq JOIN tasks t ON t.seq = p.task_seq'
const COLUMNS = `r.seq, r.at, t.id AS task, r.push_seq, p.commit_oid, r.requested_by, r.verdict, r.reviewer, r.note, ${STATE} AS state`
const SELECT = `SELECT ${COLUMNS} ${FROM}`

const SLICE = 500

const REQUEST_ID = /^q([1-9]\d{0,14})$/
const PUSH_ID = /^p([1-9]\d{0,14})$/
const seqOf = (pattern: RegExp, id: string): number => Number(pattern.exec(id)?.[1] ?? -1)

const toRow = (row: Stored): ReviewRow => ({
  request: `q${String(row.seq)}`,
  at: row.at,
  task: row.task,
  push: `p${String(row.push_seq)}`,
  commit: row.commit_oid,
  requestedBy: row.requested_by,
  verdict: row.verdict,
  reviewer: row.reviewer,
  note: row.note,
  state: row.state,
})

/** Only conditions that are asked for stand in the query. CROSS JOIN keeps the order of the tables, and with it that of the rows. */
function toQuery({ task, state, of }: ReviewFilter): string {
  const asked = [
    [task, ' AND t.id = @task'],
    [state, ` AND ${STATE} = @state`],
    [of, ' AND @of IN (r.requested_by, r.reviewer, t.assignee, p.instance)'],
  ] as const
  const where = asked.flatMap(([value, sql]) => (value === undefined ? [] : [sql])).join('')
  const from = 'FROM review_requests r CROSS JOIN pushes p ON p.seq = r.push_seq CROSS JOIN tasks t ON t.seq = p.task_seq'
  return `SELECT ${COLUMNS} ${from} WHERE t.business = @business AND r.seq > @after AND r.seq <= @through${where} ORDER BY r.seq`
}

function createList({ db, business }: TableContext): ReviewsTable['list'] {
  const prepare = keepPrepared<Stored>(db)
  const last = db.prepare<[], number>('SELECT coalesce(max(seq), 0) FROM review_requests').pluck()
  return function* (filter = {}) {
    const { task, state, of } = filter
    const statement = prepare(toQuery(filter))
    const end = last.get() ?? 0
    for (let after = filter.after === undefined ? 0 : seqOf(REQUEST_ID, filter.after); after < end; after += SLICE) {
      const params = { business, task: task ?? null, state: state ?? null, of: of ?? null, after, through: after + SLICE }
      yield eachRow(statement, [params], toRow)
    }
  }
}

export function createReviews(context: TableContext): ReviewsTable {
  const { db, business, stamp } = context
  const insert = change(context, 'INSERT INTO review_requests (push_seq, at, requested_by) VALUES (?, ?, ?)')
  const judge = change(context, 'UPDATE review_requests SET verdict = ?, reviewer = ?, note = ?, judged_at = ? WHERE seq = ?')
  const get = db.prepare<[string, number], Stored>(`${SELECT} WHERE t.business = ? AND r.seq = ?`)
  const open = db.prepare<[string, number], Stored>(`${SELECT} WHERE t.business = ? AND r.push_seq = ? AND r.verdict IS NULL`)
  const approved = db
    .prepare<[string, string], number>(
      `SELECT p.seq FROM tasks t JOIN pushes p ON p.task_seq = t.seq WHERE t.business = ? AND t.id = ?
        AND (SELECT verdict FROM review_requests WHERE push_seq = p.seq AND verdict IS NOT NULL ORDER BY seq DESC LIMIT 1) = 'approve' ORDER BY p.seq DESC LIMIT 1`,
    )
    .pluck()
  // of several rows the bare columns are those of the one with the maximum (sqlite.org/lang_select.html, 2.5)
  const approvals = db.prepare<[string], Approval & { readonly seq: number }>(
    `SELECT t.id AS task, p.project, p.commit_oid AS "commit", max(r.seq) AS seq ${FROM} WHERE t.business = ? AND r.verdict = 'approve' GROUP BY t.seq`,
  )
  const found = (row: Stored | undefined): ReviewRow | null => (row === undefined ? null : toRow(row))
  const find = (request: string): ReviewRow | null => found(get.get(business, seqOf(REQUEST_ID, request)))
  return {
    insert({ push, requestedBy }) {
      const { lastInsertRowid } = insert(seqOf(PUSH_ID, push), stamp(), requestedBy)
      const row = find(`q${String(lastInsertRowid)}`)
      if (row === null) throw new Error(`a review request for ${push}, which is no push`)
      return row
    },
    get: find,
    openOf: (push) => found(open.get(business, seqOf(PUSH_ID, push))),
    judge: (request, { verdict, reviewer, note }) => void judge(verdict, reviewer, note, stamp(), seqOf(REQUEST_ID, request)),
    list: createList(context),
    approvedPush(task) {
      const seq = approved.get(business, task)
      return seq === undefined ? null : `p${String(seq)}`
    },
    approvals: () => approvals.all(business).map(({ task: id, project, commit }) => ({ task: id, project, commit })),
  }
}
