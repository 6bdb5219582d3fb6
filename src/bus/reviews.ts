import { AppError } from '../core/errors.ts'
import type { BusParams } from '../protocol/bus.ts'
import type { Principal } from '../protocol/common.ts'
import type { PushRow, ReviewRow } from '../protocol/rows.ts'
import { actorOf, addressOf, type BrokerContext, nameOf } from './context.ts'
import type { MessageRules } from './messages.ts'
import { lastPage } from './pages.ts'
import type { About, Permits } from './permits.ts'
import type { TaskRecord } from './ports.ts'
import { creatorOf } from './pushes.ts'
import { assertJudgeable, assertOpen, mayAskReview } from './rules.ts'
import type { TaskRules } from './tasks.ts'

export interface ReviewRules {
  /** A request for the task's latest push; the one that is open already, if one is. */
  request(principal: Principal, params: BusParams<'review.request'>): Promise<ReviewRow>
  verdict(principal: Principal, params: BusParams<'review.verdict'>): Promise<ReviewRow>
  /** For the founder, reviewers and readers of tasks all; for others those of their tasks and pushes, and their own. */
  list(principal: Principal, params: BusParams<'review.list'>): ReviewRow[]
  show(request: string): ReviewRow
}

/** Called with an approval once it is durable, before it is answered: sets the ref of the approved commit. */
export type OnApproved = (approval: { readonly task: string; readonly project: string; readonly commit: string }) => Promise<void>

export function createReviewRules(context: BrokerContext, permits: Permits, tasks: TaskRules, notes: Pick<MessageRules, 'hostNote'>, onApproved: OnApproved): ReviewRules {
  const { store, roster } = context
  const { reviews, pushes, trail } = store

  const tell = (names: readonly string[], subject: string, body: string): void => {
    for (const name of new Set(names)) notes.hostNote(name, subject, body)
  }
  /** Instances whose role may judge, but for those that could not judge this task. */
  const judges = (task: string): string[] => {
    const { instances, grants } = roster()
    const pushers = pushes.pushersOf(task)
    return [...instances].filter(([name, { role }]) => grants(role).has('review.verdict') && !pushers.includes(name)).map(([name]) => name)
  }
  const latestPush = (task: TaskRecord): PushRow => {
    const push = pushes.latestOf(task.id)
    if (push === null) throw new AppError('push-not-found', `the task ${task.id} has no push`)
    return push
  }
  const requestNow = (principal: Principal, about: About, id: string): ReviewRow => {
    const task = tasks.find(id)
    assertOpen(task)
    const push = latestPush(task)
    const open = reviews.openOf(push.id)
    if (open !== null) return open
    const row = reviews.insert({ push: push.id, requestedBy: nameOf(principal) })
    permits.used(principal, 'review.request', about)
    const facts = { request: row.request, push: push.id, commit: push.commit }
    trail.append({ kind: 'review.requested', subject: id, actor: actorOf(principal), body: facts })
    tell(judges(id), `review request ${row.request}`, `Review request ${row.request}: task ${id}, push ${push.id}, commit ${push.commit}.`)
    return row
  }
  const find = (request: string): ReviewRow => {
    const row = reviews.get(request)
    if (row === null) throw new AppError('request-not-found', `no review request has the id ${JSON.stringify(request)}`)
    return row
  }
  const verdictNow = (principal: Principal, about: About, params: BusParams<'review.verdict'>): ReviewRow => {
    const { request: id, commit, verdict, note } = params
    const request = find(id)
    const task = tasks.find(request.task)
    const session = principal.kind === 'session' ? store.sessions.get(principal.run) : null
    assertJudgeable({ principal, request, commit, pushers: pushes.pushersOf(task.id), session })
    assertOpen(task)
    reviews.judge(id, { verdict, reviewer: nameOf(principal), note })
    permits.used(principal, 'review.verdict', { ...about, subject: task.id })
    trail.append({ kind: 'review.verdict', subject: task.id, actor: actorOf(principal), body: { request: id, push: request.push, commit, verdict } })
    const pusher = pushes.get(request.push)?.instance
    const others = [pusher ?? '', creatorOf(task)].filter((name) => name !== '' && name !== addressOf(principal))
    tell(others, `verdict on task ${task.id}: ${verdict}`, `Review request ${id}, task ${task.id}, push ${request.push}, commit ${commit}: ${verdict} by ${addressOf(principal)}.`)
    return find(id)
  }
  const isOwn = (principal: Principal, row: ReviewRow): boolean => {
    if (row.requestedBy === nameOf(principal) || row.reviewer === nameOf(principal)) return true
    return store.tasks.get(row.task)?.assignee === nameOf(principal) || pushes.get(row.push)?.instance === nameOf(principal)
  }
  return {
    show: find,
    async request(principal, { task: id }) {
      const about = { action: 'review.request', subject: id }
      await permits.demand(principal, 'review.request', about)
      const task = tasks.find(id)
      const push = latestPush(task)
      if (!mayAskReview(principal, task, push)) await permits.deny(principal, 'review.request', about, `the task ${id} is another instance's`)
      return store.write(() => requestNow(principal, about, id))
    },
    async verdict(principal, params) {
      const about = { action: 'review.verdict', subject: null, body: { request: params.request, verdict: params.verdict } }
      await permits.demand(principal, 'review.verdict', about)
      const row = await store.write(() => verdictNow(principal, about, params))
      const project = pushes.get(row.push)?.project
      if (params.verdict === 'approve' && project !== undefined) await onApproved({ task: row.task, project, commit: row.commit })
      return row
    },
    list(principal, params) {
      const all = permits.has(principal, 'task.read') || permits.has(principal, 'review.verdict')
      return lastPage(reviews.list(params).filter((row) => all || isOwn(principal, row)))
    },
  }
}
