import { AppError } from '../core/errors.ts'
import type { Principal } from '../protocol/common.ts'
import type { MessageRow, PushRow, ReviewRow } from '../protocol/rows.ts'
import type { BrokerSession, TaskRecord } from './ports.ts'

/** Is it a REQUEST to `by`, from `to`, that no RESULT has answered and that is not dead? */
export const isOwed = (request: MessageRow | null, by: string, to: string): request is MessageRow =>
  request?.class === 'REQUEST' && request.to === by && request.from_instance === to && request.state !== 'answered' && request.state !== 'dead'

/** Is the task the principal's own: did it create it, or is it assigned to it? */
export const isOwnTask = (principal: Principal, { assignee, createdBy, createdByKind }: TaskRecord): boolean =>
  principal.kind === 'session' ? assignee === principal.instance || (createdByKind === 'session' && createdBy === principal.instance) : true

/** A pushed task closes on an approving verdict for its latest push, the last verdict on it; others close at once. */
export function assertClosable(task: TaskRecord): void {
  if (task.latestPush === null || task.verdict === 'approve') return
  const why = task.verdict === 'reject' ? 'was rejected' : 'has no verdict'
  throw new AppError('not-approved', `the latest push ${task.latestPush} of task ${task.id} ${why}`)
}

export function assertOpen(task: TaskRecord): void {
  if (task.state === 'closed') throw new AppError('task-closed', `the task ${task.id} is closed`)
}

/** A task's first push fixes its project, as its creator may have. */
export function assertProject(task: TaskRecord, project: string): void {
  if (task.project !== null && task.project !== project) throw new AppError('wrong-project', `the task ${task.id} belongs to the project ${task.project}`)
}

interface Judgement {
  readonly principal: Principal
  readonly request: ReviewRow
  readonly commit: string
  /** Instances that pushed to the task. */
  readonly pushers: readonly string[]
  /** The judging run; null for the founder. */
  readonly session: Pick<BrokerSession, 'launchedBy' | 'launchedByKind'> | null
}

const isOwnWork = ({ principal, pushers, session }: Judgement): boolean => {
  if (principal.kind !== 'session') return false
  return pushers.includes(principal.instance) || (session?.launchedByKind === 'session' && pushers.includes(session.launchedBy))
}

/** One verdict a request, on the commit that it names, while that is the task's latest, and never on own work. */
export function assertJudgeable(judgement: Judgement): void {
  const { request, commit } = judgement
  if (request.verdict !== null) throw new AppError('already-judged', `the request ${request.request} has its verdict: ${request.verdict}`)
  if (isOwnWork(judgement)) throw new AppError('own-work', `the task ${request.task} has a push of this instance or of the one that launched it`)
  if (request.state === 'stale') throw new AppError('stale', `a later push has replaced ${request.push}`)
  if (request.commit !== commit) throw new AppError('invalid-request', `the request ${request.request} is about the commit ${request.commit}`)
}

/** May the principal ask for a review of this push? Whoever works on the task may. */
export const mayAskReview = (principal: Principal, task: TaskRecord, push: PushRow): boolean =>
  isOwnTask(principal, task) || (principal.kind === 'session' && push.instance === principal.instance)
