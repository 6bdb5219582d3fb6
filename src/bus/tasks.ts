import { AppError } from '../core/errors.ts'
import { isId } from '../core/ids.ts'
import type { BusParams, TaskCreate } from '../protocol/bus.ts'
import type { Principal } from '../protocol/common.ts'
import type { TaskRow } from '../protocol/rows.ts'
import { actorOf, type BrokerContext, FOUNDER, HOST, nameOf } from './context.ts'
import { firstPage } from './pages.ts'
import type { About, Permits } from './permits.ts'
import type { Roster, TaskRecord } from './ports.ts'
import { assertClosable, assertOpen, isOwnTask } from './rules.ts'

export interface TaskClose {
  readonly task: string
  readonly reason?: string | undefined
  /** The founder's alone. */
  readonly override?: boolean | undefined
  /** Judges alone; the founder's, too. */
  readonly dryRun?: boolean | undefined
}

export interface TaskRules {
  create(principal: Principal, params: TaskCreate): Promise<TaskRow>
  /** Own tasks; with task.read, and for the founder, all. Oldest first, after a task; throws `task-not-found` where there is none of that id. */
  list(principal: Principal, params: BusParams<'task.list'>): TaskRow[]
  show(principal: Principal, params: BusParams<'task.show'>): Promise<TaskRow>
  assign(principal: Principal, params: BusParams<'task.assign'>): Promise<TaskRow>
  close(principal: Principal, params: TaskClose): Promise<TaskRow>
  /** The task of that id; throws `task-not-found`. */
  find(id: string): TaskRecord
}

/** A task is a branch to those who work on it, beside main. */
const RESERVED: readonly string[] = [FOUNDER, HOST, 'main']

const toRow = ({ createdByKind: _kind, ...row }: TaskRecord): TaskRow => row

/** The task of that id; throws `task-not-found`. */
function findTask({ tasks }: BrokerContext['store'], id: string): TaskRecord {
  const task = tasks.get(id)
  if (task === null) throw new AppError('task-not-found', `no task has the id ${JSON.stringify(id)}`)
  return task
}

/** What the acts do, inside their transactions. */
function createActs({ store }: BrokerContext, permits: Permits) {
  const { tasks, trail } = store
  const find = (id: string): TaskRecord => findTask(store, id)
  return {
    create(principal: Principal, params: TaskCreate): TaskRecord {
      const { id = null, title, body, project = null, assignee = null } = params
      if (id !== null && tasks.get(id) !== null) throw new AppError('task-exists', `there is a task ${id} already`)
      const createdByKind = principal.kind === 'session' ? 'session' : 'founder'
      const task = tasks.insert({ id, title, body, project, assignee, createdBy: nameOf(principal), createdByKind })
      permits.used(principal, 'task.create', { action: 'task.create', subject: task.id })
      trail.append({ kind: 'task.created', subject: task.id, actor: actorOf(principal), body: { project, assignee } })
      return task
    },
    assign(principal: Principal, about: About, { task: id, instance }: BusParams<'task.assign'>): TaskRecord {
      assertOpen(find(id))
      tasks.setAssignee(id, instance)
      permits.used(principal, 'task.assign', about)
      trail.append({ kind: 'task.assigned', subject: id, actor: actorOf(principal), body: { assignee: instance } })
      return find(id)
    },
    close(principal: Principal, about: About, { task: id, reason, override = false, dryRun = false }: TaskClose): TaskRecord {
      const task = find(id)
      assertOpen(task)
      if (!override) assertClosable(task)
      if (dryRun) return task
      tasks.setClosed(id)
      permits.used(principal, 'task.close', about)
      const facts = { push: task.latestPush, verdict: task.verdict, reason: reason ?? null }
      if (override) trail.append({ kind: 'override', subject: id, actor: actorOf(principal), body: facts })
      trail.append({ kind: 'task.closed', subject: id, actor: actorOf(principal), body: { ...facts, override } })
      return find(id)
    },
  }
}

const assertInstance = ({ instances }: Roster, name: string): void => {
  if (!instances.has(name)) throw new AppError('instance-not-found', `no instance is called ${JSON.stringify(name)}`)
}

function assertNew(roster: Roster, { id, project, assignee }: TaskCreate): void {
  if (id !== undefined && (!isId(id) || RESERVED.includes(id))) throw new AppError('invalid-request', `id: ${JSON.stringify(id)} is no id of a task`)
  if (project !== undefined && !roster.projects.includes(project)) throw new AppError('project-not-found', `no project is called ${JSON.stringify(project)}`)
  if (assignee !== undefined) assertInstance(roster, assignee)
}

function assertOverride(principal: Principal, { override = false, reason }: TaskClose): void {
  if (override && principal.kind !== 'founder') throw new AppError('not-permitted', 'only the founder may override a verdict')
  if (override && reason === undefined) throw new AppError('invalid-request', 'an override names its reason')
}

export function createTaskRules(context: BrokerContext, permits: Permits): TaskRules {
  const { store, roster, failpoint } = context
  const acts = createActs(context, permits)
  return {
    find: (id) => findTask(store, id),
    async create(principal, params) {
      await permits.demand(principal, 'task.create', { action: 'task.create', subject: params.id ?? null })
      assertNew(roster(), params)
      return toRow(await store.write(() => acts.create(principal, params)))
    },
    list(principal, { state, after }) {
      if (after !== undefined) findTask(store, after)
      const of = permits.has(principal, 'task.read') ? undefined : nameOf(principal)
      return firstPage(store.tasks.list({ state, of, after })).map(toRow)
    },
    async show(principal, { task: id }) {
      const task = findTask(store, id)
      if (!isOwnTask(principal, task)) await permits.demand(principal, 'task.read', { action: 'task.show', subject: id })
      return toRow(task)
    },
    async assign(principal, params) {
      const about = { action: 'task.assign', subject: params.task, body: { assignee: params.instance } }
      await permits.demand(principal, 'task.assign', about)
      assertInstance(roster(), params.instance)
      return toRow(await store.write(() => acts.assign(principal, about, params)))
    },
    async close(principal, params) {
      const about = { action: 'task.close', subject: params.task }
      await permits.demand(principal, 'task.close', about)
      assertOverride(principal, params)
      const task = await store.write(() => {
        const closed = acts.close(principal, about, params)
        failpoint?.('close.commit')
        return closed
      })
      failpoint?.('close.reply')
      return toRow(task)
    },
  }
}
