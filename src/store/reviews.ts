import type { ReviewRow } from '../protocol/rows.ts'
import { change, type TableContext } from './database.ts'

export interface Verdict {
  readonly verdict: 'approve' | 'reject'
  readonly reviewer: string
  readonly note: string
}

export interface ReviewFilter {
  readonly task?: string | undefined
  readonly state?: ReviewRow['state'] | undefined
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
  /** Oldest first. */
  list(filter?: ReviewFilter): ReviewRow[]
  /** The last approval of each task, or of the one task. */
  approvals(task?: string): Approval[]
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
const SELECT = `SELECT r.seq, r.at, t.id AS task, r.push_seq, p.commit_oid, r.requested_by, r.verdict, r.reviewer, r.note, ${STATE} AS state ${FROM}`

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

export function createReviews(context: TableContext): ReviewsTable {
  const { db, business, stamp } = context
  const insert = change(context, 'INSERT INTO review_requests (push_seq, at, requested_by) VALUES (?, ?, ?)')
  const judge = change(context, 'UPDATE review_requests SET verdict = ?, reviewer = ?, note = ?, judged_at = ? WHERE seq = ?')
  const get = db.prepare<[string, number], Stored>(`${SELECT} WHERE t.business = ? AND r.seq = ?`)
  const open = db.prepare<[string, number], Stored>(`${SELECT} WHERE t.business = ? AND r.push_seq = ? AND r.verdict IS NULL`)
  const list = db.prepare<[string, string | null, string | null, string | null, string | null], Stored>(
    `${SELECT} WHERE t.business = ? AND (? IS NULL OR t.id = ?) AND (? IS NULL OR ${STATE} = ?) ORDER BY r.seq`,
  )
  // of several rows the bare columns are those of the one with the maximum (sqlite.org/lang_select.html, 2.5)
  const approvals = db.prepare<[string, string | null, string | null], Approval & { readonly seq: number }>(
    `SELECT t.id AS task, p.project, p.commit_oid AS "commit", max(r.seq) AS seq ${FROM} WHERE t.business = ? AND r.verdict = 'approve' AND (? IS NULL OR t.id = ?) GROUP BY t.seq`,
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
    list: ({ task, state } = {}) => list.all(business, task ?? null, task ?? null, state ?? null, state ?? null).map(toRow),
    approvals: (task) => approvals.all(business, task ?? null, task ?? null).map(({ task: id, project, commit }) => ({ task: id, project, commit })),
  }
}
