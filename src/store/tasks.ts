import type { TaskRow } from '../protocol/rows.ts'
import { change, type TableContext } from './database.ts'

export interface NewTask {
  /** null: the next free `t-N`. */
  readonly id: string | null
  readonly title: string
  readonly body: string
  readonly project: string | null
  readonly assignee: string | null
  readonly createdBy: string
  readonly createdByKind: 'founder' | 'session'
}

export interface TaskRecord extends TaskRow {
  readonly createdByKind: 'founder' | 'session'
}

export interface TasksTable {
  insert(task: NewTask): TaskRecord
  get(id: string): TaskRecord | null
  /** Oldest first; with an instance, those that it created or is assigned. */
  list(filter?: { readonly state?: 'open' | 'closed' | undefined; readonly of?: string | undefined }): TaskRecord[]
  setAssignee(id: string, assignee: string): void
  setProject(id: string, project: string): void
  setClosed(id: string): void
}

interface Stored {
  readonly id: string
  readonly title: string
  readonly body: string
  readonly project: string | null
  readonly assignee: string | null
  readonly state: 'open' | 'closed'
  readonly created_by: string
  readonly created_by_kind: 'founder' | 'session'
  readonly created_at: string
  readonly closed_at: string | null
  readonly latest_push: number | null
  readonly verdict: 'approve' | 'reject' | null
}

// the verdict of a task is the last one given on its latest push
const SELECT = `SELECT t.id, t.title, t.body, t.project, t.assignee, t.state, t.created_by, t.created_by_kind, t.created_at, t.closed_at, p.seq AS latest_push,
  (SELECT verdict FROM review_requests WHERE push_seq = p.seq AND verdict IS NOT NULL ORDER BY seq DESC LIMIT 1) AS verdict
  FROM tasks t LEFT JOIN pushes p ON p.seq = (SELECT max(seq) FROM pushes WHERE task_seq = t.seq)`

const toRecord = (row: Stored): TaskRecord => ({
  id: row.id,
  title: row.title,
  body: row.body,
  project: row.project,
  assignee: row.assignee,
  state: row.state,
  createdBy: row.created_by,
  createdByKind: row.created_by_kind,
  createdAt: row.created_at,
  closedAt: row.closed_at,
  latestPush: row.latest_push === null ? null : `p${String(row.latest_push)}`,
  verdict: row.verdict,
})

export function createTasks(context: TableContext): TasksTable {
  const { db, business, stamp } = context
  const insert = change(
    context,
    "INSERT INTO tasks (business, id, title, body, project, assignee, state, created_by, created_by_kind, created_at) VALUES (?, ?, ?, ?, ?, ?, 'open', ?, ?, ?)",
  )
  const count = db.prepare<[string], number>('SELECT count(*) FROM tasks WHERE business = ?').pluck()
  const get = db.prepare<[string, string], Stored>(`${SELECT} WHERE t.business = ? AND t.id = ?`)
  const list = db.prepare<[string, string | null, string | null, string | null, string | null], Stored>(
    `${SELECT} WHERE t.business = ? AND (? IS NULL OR t.state = ?) AND (? IS NULL OR ? IN (t.assignee, t.created_by)) ORDER BY t.seq`,
  )
  const setAssignee = change(context, 'UPDATE tasks SET assignee = ? WHERE business = ? AND id = ?')
  const setProject = change(context, 'UPDATE tasks SET project = ? WHERE business = ? AND id = ?')
  const setClosed = change(context, "UPDATE tasks SET state = 'closed', closed_at = ? WHERE business = ? AND id = ?")

  const find = (id: string): TaskRecord | null => {
    const row = get.get(business, id)
    return row === undefined ? null : toRecord(row)
  }
  const nextId = (): string => {
    for (let number = (count.get(business) ?? 0) + 1; ; number++) {
      const id = `t-${String(number)}`
      if (find(id) === null) return id
    }
  }
  return {
    insert(task) {
      const id = task.id ?? nextId()
      const createdAt = stamp()
      const { title, body, project, assignee, createdBy, createdByKind } = task
      insert(business, id, title, body, project, assignee, createdBy, createdByKind, createdAt)
      return { id, title, body, project, assignee, state: 'open', createdBy, createdByKind, createdAt, closedAt: null, latestPush: null, verdict: null }
    },
    get: find,
    list({ state, of } = {}) {
      return list.all(business, state ?? null, state ?? null, of ?? null, of ?? null).map(toRecord)
    },
    setAssignee: (id, assignee) => void setAssignee(assignee, business, id),
    setProject: (id, project) => void setProject(project, business, id),
    setClosed: (id) => void setClosed(stamp(), business, id),
  }
}
