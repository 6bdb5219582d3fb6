import type { ControlMethod } from '../protocol/control.ts'
import type {
  AgentRow,
  AskRow,
  EnvRow,
  FetchableRow,
  FounderLaunchRow,
  LogRow,
  MessageRow,
  OwedRow,
  PushRow,
  PushShowRow,
  RepositoryRow,
  ReviewRow,
  RunRow,
  StatusRow,
  TaskRow,
  TimelineRow,
  TrailHeadRow,
  TrailRow,
  TrailVerifyRow,
  UsageRow,
} from '../protocol/rows.ts'

/** A file of a run, read by the client itself: it is the same user. */
interface FileRow {
  readonly path: string
}

interface DiffRow {
  readonly push: string
  /** What `git diff` prints. */
  readonly diff: string
  /** Paths in it that act by themselves once they are checked out or installed. */
  readonly acting: readonly string[]
  /** false: it changes more paths than a list has room for. */
  readonly complete: boolean
}

interface SentRow {
  readonly id: string
}

/** Facts that are shown as they come. */
type Facts = Readonly<Record<string, unknown>>

/** What each method of the control socket answers. Lists are pages: an empty one is the last. */
export interface ControlResults extends Record<ControlMethod, unknown> {
  readonly agents: readonly AgentRow[]
  readonly 'message.send': SentRow
  readonly 'message.ack': Facts
  readonly 'message.owed': readonly OwedRow[]
  readonly 'message.show': MessageRow
  readonly 'message.thread': readonly MessageRow[]
  readonly 'task.create': TaskRow
  readonly 'task.list': readonly TaskRow[]
  readonly 'task.show': TaskRow
  readonly 'task.assign': TaskRow
  readonly 'task.close': TaskRow
  readonly 'review.request': ReviewRow
  readonly 'review.list': readonly ReviewRow[]
  readonly 'review.show': ReviewRow
  readonly 'review.verdict': ReviewRow
  readonly 'push.list': readonly PushRow[]
  readonly 'push.show': PushShowRow
  readonly 'push.diff': DiffRow
  readonly 'task.fetchable': FetchableRow
  readonly 'repo.list': readonly RepositoryRow[]
  readonly 'repo.sync': readonly RepositoryRow[]
  readonly status: StatusRow
  readonly ps: readonly RunRow[]
  readonly show: RunRow
  /** The row once the run has ended, or as it is after waitMs. */
  readonly wait: RunRow
  readonly launch: FounderLaunchRow
  readonly stop: readonly RunRow[]
  readonly kill: RunRow
  readonly logs: FileRow
  readonly transcript: FileRow
  readonly ask: AskRow
  readonly inbox: readonly MessageRow[]
  readonly log: readonly LogRow[]
  readonly 'log.explain': Facts
  readonly timeline: readonly TimelineRow[]
  readonly trail: readonly TrailRow[]
  readonly 'trail.head': TrailHeadRow
  readonly 'trail.verify': TrailVerifyRow
  readonly usage: readonly UsageRow[]
  readonly reload: Facts
  readonly 'env.list': readonly EnvRow[]
  /** Where everything of it is now, or would be. */
  readonly 'env.release': { readonly env: string; readonly path: string }
  readonly gc: readonly Facts[]
  /** A copy of the store, the caller's to remove. */
  readonly backup: FileRow
}
