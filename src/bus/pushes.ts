import { AppError } from '../core/errors.ts'
import type { Principal, SessionPrincipal } from '../protocol/common.ts'
import type { PushRow } from '../protocol/rows.ts'
import { actorOf, type BrokerContext, FOUNDER } from './context.ts'
import { firstPage } from './pages.ts'
import type { Permits } from './permits.ts'
import type { TaskRecord } from './ports.ts'
import type { Post } from './post.ts'
import { assertOpen, assertProject } from './rules.ts'
import type { TaskRules } from './tasks.ts'

export interface PushTarget {
  readonly project: string
  readonly task: string
}

export interface PushRules {
  /** Before any byte of a push is looked at: may this run push to that task? Throws the code of the refusal, recorded where a right is lacking. */
  check(principal: SessionPrincipal, target: PushTarget): Promise<void>
  /** Once the work ref has moved: the push's row and its record, judged again. The same tip again adds nothing. */
  record(principal: SessionPrincipal, push: PushTarget & { readonly ref: string; readonly commit: string }): Promise<PushRow>
  /** Oldest first, after a push. */
  list(params: { readonly task?: string | undefined; readonly after?: string | undefined }): PushRow[]
  show(id: string): PushRow
}

const GRANT = 'git.push.working'

/** Where the creator of a task is written to. */
export const creatorOf = ({ createdBy, createdByKind }: TaskRecord): string => (createdByKind === 'founder' ? FOUNDER : createdBy)

export function createPushRules({ store, roster, failpoint }: BrokerContext, permits: Permits, tasks: TaskRules, notes: Pick<Post, 'hostNote'>): PushRules {
  const { pushes, trail } = store
  const about = ({ task, project }: PushTarget): Parameters<Permits['demand']>[2] => ({ action: 'push', subject: task, body: { project, task } })

  const assertTarget = ({ project, task: id }: PushTarget): TaskRecord => {
    if (!roster().projects.includes(project)) throw new AppError('project-not-found', `no project is called ${JSON.stringify(project)}`)
    const task = tasks.find(id)
    assertOpen(task)
    assertProject(task, project)
    return task
  }
  const isForeign = (principal: Principal, { assignee }: TaskRecord): boolean =>
    assignee !== null && principal.kind === 'session' && assignee !== principal.instance
  const foreign = (id: string): string => `the task ${id} is assigned to another instance`

  const insert = (principal: SessionPrincipal, task: TaskRecord, { project, ref, commit }: { project: string; ref: string; commit: string }): PushRow => {
    const { instance, run } = principal
    const push = pushes.insert({ task: task.id, project, ref, commit, run, instance })
    if (task.project === null) store.tasks.setProject(task.id, project)
    if (task.assignee === null) store.tasks.setAssignee(task.id, instance)
    const body = { grant: GRANT, project, task: task.id, ref, commit, push: push.id }
    trail.append({ kind: 'action.allowed', subject: task.id, actor: actorOf(principal), body })
    const creator = creatorOf(task)
    if (creator !== instance) notes.hostNote(creator, `push ${push.id} to task ${task.id}`, `${instance} pushed ${commit} to task ${task.id}: push ${push.id}.`)
    return push
  }
  /** A push may take minutes, in which its run may end and its role lose the grant. */
  const assertStill = (principal: SessionPrincipal): void => {
    if (store.sessions.get(principal.run)?.state === 'ended') throw new AppError('unauthenticated', `the run ${principal.run} has ended`)
    if (!permits.has(principal, GRANT)) throw new AppError('not-permitted', `push needs the grant ${GRANT}`)
  }
  const recordNow = (principal: SessionPrincipal, push: PushTarget & { readonly ref: string; readonly commit: string }): PushRow => {
    assertStill(principal)
    const task = assertTarget(push)
    if (isForeign(principal, task)) throw new AppError('not-permitted', foreign(task.id))
    const latest = pushes.latestOf(task.id)
    const row = latest?.commit === push.commit ? latest : insert(principal, task, push)
    failpoint?.('push.commit')
    return row
  }
  return {
    async check(principal, target) {
      await permits.demand(principal, GRANT, about(target))
      const task = assertTarget(target)
      assertStill(principal)
      if (isForeign(principal, task)) await permits.deny(principal, GRANT, about(target), foreign(task.id))
    },
    record: (principal, push) => store.write(() => recordNow(principal, push)),
    list: (params) => firstPage(pushes.list(params)),
    show(id) {
      const push = pushes.get(id)
      if (push === null) throw new AppError('push-not-found', `no push has the id ${JSON.stringify(id)}`)
      return push
    },
  }
}
