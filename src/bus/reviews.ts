import type { BusParams } from '../protocol/bus.ts'
import type { Principal } from '../protocol/common.ts'
import type { ReviewRow } from '../protocol/rows.ts'
import { type BrokerContext, nameOf } from './context.ts'
import { createJudge } from './judge.ts'
import { firstPageOf } from './pages.ts'
import type { Permits } from './permits.ts'
import type { Post } from './post.ts'
import { mayAskReview } from './rules.ts'
import type { TaskRules } from './tasks.ts'

export interface ReviewRules {
  /** A request for the task's latest push; the one that is open already, if one is. */
  request(principal: Principal, params: BusParams<'review.request'>): Promise<ReviewRow>
  verdict(principal: Principal, params: BusParams<'review.verdict'>): Promise<ReviewRow>
  /** For the founder, reviewers and readers of tasks all; for others those of their tasks and pushes, and their own. Oldest first, after a request. */
  list(principal: Principal, params: BusParams<'review.list'>): Promise<ReviewRow[]>
  show(request: string): ReviewRow
}

/**
 * Called with an approval once it is durable: sets the ref of the approved commit, however long that takes. Its promise is what the
 * answer waits for, and never rejects: the verdict counts from the commit on, and its answer must say so.
 */
export type OnApproved = (approval: { readonly task: string; readonly project: string }) => Promise<void>

interface ReviewDeps extends Pick<BrokerContext, 'store' | 'roster' | 'failpoint'> {
  readonly permits: Permits
  readonly tasks: TaskRules
  readonly post: Pick<Post, 'hostNote'>
  readonly onApproved: OnApproved
}

export function createReviewRules(deps: ReviewDeps): ReviewRules {
  const { store, permits, tasks, onApproved, failpoint } = deps
  const judge = createJudge(deps)

  return {
    show: judge.find,
    async request(principal, { task: id }) {
      const about = { action: 'review.request', subject: id }
      await permits.demand(principal, 'review.request', about)
      const task = tasks.find(id)
      const own = mayAskReview(principal, task, judge.latestPush(task))
      if (!own) await permits.deny(principal, 'review.request', about, `the task ${id} is another instance's`)
      return store.write(() => judge.request(principal, about, id))
    },
    async verdict(principal, params) {
      const about = { action: 'review.verdict', subject: null, body: { request: params.request, verdict: params.verdict } }
      await permits.demand(principal, 'review.verdict', about)
      const row = await store.write(() => {
        const judged = judge.verdict(principal, about, params)
        failpoint?.('verdict.commit')
        return judged
      })
      const project = store.pushes.get(row.push)?.project
      if (params.verdict === 'approve' && project !== undefined) await onApproved({ task: row.task, project })
      failpoint?.('verdict.reply')
      return row
    },
    list(principal, params) {
      const all = permits.has(principal, 'task.read') || permits.has(principal, 'review.verdict')
      return firstPageOf(store.reviews.list({ ...params, of: all ? undefined : nameOf(principal) }))
    },
  }
}
