import { AppError } from '../core/errors.ts'
import type { BusParams } from '../protocol/bus.ts'
import type { Principal } from '../protocol/common.ts'
import type { PushRow, ReviewRow } from '../protocol/rows.ts'
import { actorOf, addressOf, type BrokerContext, nameOf } from './context.ts'
import type { About, Permits } from './permits.ts'
import type { TaskRecord } from './ports.ts'
import type { Post } from './post.ts'
import { creatorOf } from './pushes.ts'
import { assertJudgeable, assertOpen } from './rules.ts'
import type { TaskRules } from './tasks.ts'

/** What the acts of a review do, inside their transactions. */
export interface Judge {
  readonly request: (principal: Principal, about: About, task: string) => ReviewRow
  readonly verdict: (principal: Principal, about: About, params: BusParams<'review.verdict'>) => ReviewRow
  /** The review request of that id; throws `request-not-found`. */
  readonly find: (request: string) => ReviewRow
  /** The push that a review of the task would be about; throws `push-not-found`. */
  readonly latestPush: (task: TaskRecord) => PushRow
}

interface JudgeDeps extends Pick<BrokerContext, 'store' | 'roster'> {
  readonly permits: Permits
  readonly tasks: Pick<TaskRules, 'find'>
  readonly post: Pick<Post, 'hostNote'>
}

export function createJudge({ store, roster, permits, tasks, post }: JudgeDeps): Judge {
  const { reviews, pushes, trail } = store

  const tell = (names: readonly string[], subject: string, body: string): void => {
    for (const name of new Set(names)) post.hostNote(name, subject, body)
  }
  /** Instances whose role may judge, but for those that may not judge this task. */
  const judgesOf = (task: string): string[] => {
    const { instances, grants } = roster()
    const pushers = pushes.pushersOf(task)
    return [...instances].filter(([name, { role }]) => grants(role).has('review.verdict') && !pushers.includes(name)).map(([name]) => name)
  }
  const find = (request: string): ReviewRow => {
    const row = reviews.get(request)
    if (row === null) throw new AppError('request-not-found', `no review request has the id ${JSON.stringify(request)}`)
    return row
  }
  const latestPush = (task: TaskRecord): PushRow => {
    const push = pushes.latestOf(task.id)
    if (push === null) throw new AppError('push-not-found', `the task ${task.id} has no push`)
    return push
  }
  const tellVerdict = (principal: Principal, request: ReviewRow, verdict: string): void => {
    const { task, push, commit } = request
    const concerned = [pushes.get(push)?.instance ?? '', creatorOf(tasks.find(task))]
    const names = concerned.filter((name) => name !== addressOf(principal))
    tell(
      names,
      `verdict on task ${task}: ${verdict}`,
      `Review request ${request.request}, task ${task}, push ${push}, commit ${commit}: ${verdict} by ${addressOf(principal)}.`,
    )
  }
  return {
    find,
    latestPush,
    request(principal, about, id) {
      const task = tasks.find(id)
      assertOpen(task)
      const push = latestPush(task)
      const open = reviews.openOf(push.id)
      if (open !== null) return open
      const row = reviews.insert({ push: push.id, requestedBy: nameOf(principal) })
      permits.used(principal, 'review.request', about)
      trail.append({ kind: 'review.requested', subject: id, actor: actorOf(principal), body: { request: row.request, push: push.id, commit: push.commit } })
      tell(judgesOf(id), `review request ${row.request}`, `Review request ${row.request}: task ${id}, push ${push.id}, commit ${push.commit}.`)
      return row
    },
    verdict(principal, about, { request: id, commit, verdict, note }) {
      const request = find(id)
      const { task, push } = request
      const session = principal.kind === 'session' ? store.sessions.get(principal.run) : null
      assertJudgeable({ principal, request, commit, pushers: pushes.pushersOf(task), session })
      assertOpen(tasks.find(task))
      reviews.judge(id, { verdict, reviewer: nameOf(principal), note })
      permits.used(principal, 'review.verdict', { ...about, subject: task })
      trail.append({ kind: 'review.verdict', subject: task, actor: actorOf(principal), body: { request: id, push, commit, verdict } })
      tellVerdict(principal, request, verdict)
      return find(id)
    },
  }
}
