import type { PushRow } from '../protocol/rows.ts'
import { change, eachRow, type TableContext } from './database.ts'

export interface NewPush {
  readonly task: string
  readonly project: string
  readonly ref: string
  readonly commit: string
  readonly run: string
  readonly instance: string
}

export interface PushFilter {
  readonly task?: string | undefined
  readonly after?: string | undefined
}

export interface PushesTable {
  insert(push: NewPush): PushRow
  get(id: string): PushRow | null
  latestOf(task: string): PushRow | null
  /** Oldest first, those after the push `after`. */
  list(filter?: PushFilter): Iterable<PushRow>
  /** Every instance that pushed to a task. */
  pushersOf(task: string): string[]
}

interface Stored {
  readonly seq: number
  readonly at: string
  readonly task: string
  readonly project: string
  readonly ref: string
  readonly commit_oid: string
  readonly run: string
  readonly instance: string
  readonly latest: number
}

const COLUMNS = `p.seq, p.at, t.id AS task, p.project, p.ref, p.commit_oid, p.run, p.instance,
  p.seq = (SELECT max(seq) FROM pushes WHERE task_seq = p.task_seq) AS latest`
const SELECT = `SELECT ${COLUMNS} FROM pushes p JOIN tasks t ON t.seq = p.task_seq`

const ID = /^p([1-9]\d{0,14})$/

const seqOf = (id: string): number => Number(ID.exec(id)?.[1] ?? -1)

const toRow = ({ seq, at, task, project, ref, commit_oid, run, instance, latest }: Stored): PushRow => ({
  id: `p${String(seq)}`,
  at,
  task,
  project,
  ref,
  commit: commit_oid,
  run,
  instance,
  latest: latest === 1,
})

export function createPushes(context: TableContext): PushesTable {
  const { db, business, stamp } = context
  const insert = change(
    context,
    'INSERT INTO pushes (task_seq, at, project, ref, commit_oid, run, instance) SELECT seq, ?, ?, ?, ?, ?, ? FROM tasks WHERE business = ? AND id = ?',
  )
  const get = db.prepare<[string, number], Stored>(`${SELECT} WHERE t.business = ? AND p.seq = ?`)
  const latest = db.prepare<[string, string], Stored>(`${SELECT} WHERE t.business = ? AND t.id = ? ORDER BY p.seq DESC LIMIT 1`)
  // CROSS JOIN keeps the order of the tables (sqlite.org/optoverview.html, 8.1.2), and with it that of the rows
  const all = db.prepare<unknown[], Stored>(
    `SELECT ${COLUMNS} FROM pushes p CROSS JOIN tasks t ON t.seq = p.task_seq WHERE t.business = ? AND p.seq > ? ORDER BY p.seq`,
  )
  const ofTask = db.prepare<unknown[], Stored>(`${SELECT} WHERE t.business = ? AND p.seq > ? AND t.id = ? ORDER BY p.seq`)
  const pushers = db
    .prepare<[string, string], string>('SELECT DISTINCT p.instance FROM pushes p JOIN tasks t ON t.seq = p.task_seq WHERE t.business = ? AND t.id = ?')
    .pluck()
  const found = (row: Stored | undefined): PushRow | null => (row === undefined ? null : toRow(row))
  return {
    insert({ task, project, ref, commit, run, instance }) {
      const at = stamp()
      const { lastInsertRowid, changes } = insert(at, project, ref, commit, run, instance, business, task)
      if (changes !== 1) throw new Error(`a push to ${task}, which is no task`)
      return { id: `p${String(lastInsertRowid)}`, at, task, project, ref, commit, run, instance, latest: true }
    },
    get: (id) => found(get.get(business, seqOf(id))),
    latestOf: (task) => found(latest.get(business, task)),
    list({ task, after } = {}) {
      const from = [business, after === undefined ? 0 : seqOf(after)]
      return task === undefined ? eachRow(all, from, toRow) : eachRow(ofTask, [...from, task], toRow)
    },
    pushersOf: (task) => pushers.all(business, task),
  }
}
