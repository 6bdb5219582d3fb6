import type { TaskRow } from '../protocol/rows.ts'
import { change, eachRow, keepPrepared, type TableContext } from './database.ts'

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

export interface TaskFilter {
  readonly state?: TaskRow['state'] | undefined
  /** An instance: what it created or is assigned. */
  readonly of?: string | undefined
  /** The id of a task: those that were created after it. */
  readonly after?: string | undefined
}

export interface TasksTable {
  insert(task: NewTask): TaskRecord
  get(id: string): TaskRecord | null
  /** Oldest first. */
  list(filter?: TaskFilter): Iterable<TaskRecord>
  /** The first ids that begin so, in their own order. */
  findByPrefix(prefix: string, limit: number): string[]
  /** The ids of a project's tasks; with an assignee, of its own. */
  idsIn(project: string, assignee: string | null): string[]
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

const STATES = ['open', 'closed'] as const
const OF = ['assignee = @of', "created_by = @of AND created_by_kind = 'session'"]

/** Each part is read from an index in the order of seq, and SQLite merges them: nothing is sorted, and nothing passed over. */
function toSeqs({ state, of }: TaskFilter): string {
  const parts = (state === undefined ? STATES : [state]).flatMap((is) =>
    (of === undefined ? [''] : OF.map((own) => ` AND ${own}`)).map((own) => `state = '${is}'${own}`),
  )
  return `${parts.map((part) => `SELECT seq FROM tasks WHERE business = @business AND ${part} AND seq > @after`).join(' UNION ')} ORDER BY seq`
}

function createList({ db, business }: TableContext): TasksTable['list'] {
  const prepare = keepPrepared<number>(db)
  const bySeq = db.prepare<[number], Stored>(`${SELECT} WHERE t.seq = ?`)
  const seqOf = db.prepare<[string, string], number>('SELECT seq FROM tasks WHERE business = ? AND id = ?').pluck()
  const at = (seq: number): TaskRecord => {
    const row = bySeq.get(seq)
    if (row === undefined) throw new Error(`task number ${String(seq)} is gone`)
    return toRecord(row)
  }
  return (filter = {}) => {
    const after = filter.after === undefined ? 0 : (seqOf.get(business, filter.after) ?? Number.MAX_SAFE_INTEGER)
    return eachRow(prepare(toSeqs(filter)).pluck(), [{ business, of: filter.of ?? null, after }], at)
  }
}

export function createTasks(context: TableContext): TasksTable {
  const { db, business, stamp } = context
  const insert = change(
    context,
    "INSERT INTO tasks (business, id, title, body, project, assignee, state, created_by, created_by_kind, created_at) VALUES (?, ?, ?, ?, ?, ?, 'open', ?, ?, ?)",
  )
  const count = db.prepare<[string], number>('SELECT count(*) FROM tasks WHERE business = ?').pluck()
  const get = db.prepare<[string, string], Stored>(`${SELECT} WHERE t.business = ? AND t.id = ?`)
  const byPrefix = db
    .prepare<[string, string, string, number], string>('SELECT id FROM tasks WHERE business = ? AND id >= ? AND id < ? ORDER BY id LIMIT +?')
    .pluck()
  const inProject = db.prepare<[string, string], string>('SELECT id FROM tasks WHERE business = ? AND project = ? ORDER BY assignee, seq').pluck()
  const assigned = db.prepare<[string, string, string], string>('SELECT id FROM tasks WHERE business = ? AND project = ? AND assignee = ? ORDER BY seq').pluck()
  const isThere = db.prepare<[string, string], number>('SELECT 1 FROM tasks WHERE business = ? AND id = ?').pluck()
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
      if (isThere.get(business, id) === undefined) return id
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
    list: createList(context),
    findByPrefix: (prefix, limit) => byPrefix.all(business, prefix, `${prefix}\u{10ffff}`, limit),
    idsIn: (project, assignee) => (assignee === null ? inProject.all(business, project) : assigned.all(business, project, assignee)),
    setAssignee: (id, assignee) => void setAssignee(assignee, business, id),
    setProject: (id, project) => void setProject(project, business, id),
    setClosed: (id) => void setClosed(stamp(), business, id),
  }
}
