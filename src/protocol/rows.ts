import type { MessageState, RunState } from '../core/states.ts'
import type { EnvOutcome, LaunchEvent, MessageClass } from './common.ts'
import type { EndReason } from './end-reasons.ts'

/** The JSON rows of the CLI and of the control socket. Absent values are null, times RFC 3339 UTC, sizes bytes, durations ms. */

export interface StatusRow {
  readonly pid: number
  readonly version: string
  readonly business: string
  readonly dataRoot: string
  readonly startedAt: string
  readonly ready: boolean
  readonly sockets: Readonly<Record<'bus' | 'launch' | 'git' | 'control', string>>
  readonly sessions: number
  readonly capacity: Readonly<Record<string, { readonly max: number; readonly live: number; readonly retryAt: string | null }>>
  readonly owed: number
  readonly trailHead: string
  readonly warnings: readonly string[]
}

export interface RunRow {
  readonly run: string
  readonly instance: string
  readonly role: string
  readonly business: string
  readonly task: string | null
  readonly harness: string
  readonly model: string
  readonly family: string
  readonly state: RunState
  readonly live: boolean
  readonly launchedBy: string
  /** bwrap's monitor, as the host sees it. */
  readonly pid: number | null
  readonly runnerPid: number | null
  readonly startedAt: string
  readonly endedAt: string | null
  readonly reason: EndReason | null
  readonly exitCode: number | null
  readonly signal: string | null
  readonly runDir: string
  readonly envRoot: string
  readonly paused: boolean
  readonly waitingUntil: string | null
}

export interface LaunchRow {
  readonly run: string
  readonly instance: string
  readonly harness: string
  readonly model: string
  readonly env: EnvOutcome
}

/** What the founder is told: with `dryRun` there is no run. */
export type FounderLaunchRow = Omit<LaunchRow, 'run'> & { readonly run: string | null }

export interface LogRow {
  readonly seq: number
  readonly at: string
  readonly event: LaunchEvent
  readonly run: string | null
  readonly instance: string
  readonly [field: string]: unknown
}

export interface TrailRow {
  readonly seq: number
  readonly at: string
  readonly kind: string
  readonly subject: string | null
  readonly actor: { readonly kind: 'founder' | 'session' | 'host'; readonly name: string; readonly run: string | null }
  readonly body: Readonly<Record<string, unknown>>
  readonly hash: string
}

export interface MessageRow {
  readonly id: string
  readonly at: string
  readonly from_role: string
  readonly from_instance: string
  readonly from_run: string | null
  readonly to: string
  readonly class: MessageClass
  readonly subject: string | null
  readonly body: string
  readonly in_reply_to: string | null
  readonly deadline: string | null
  readonly failed: boolean
  readonly state: MessageState
}

/** What `message.receive` gives. */
export type ReceivedMessage = Pick<MessageRow, 'id' | 'from_role' | 'from_instance' | 'from_run' | 'class' | 'body' | 'subject' | 'in_reply_to' | 'at'>

export interface OwedRow {
  readonly id: string
  readonly at: string
  readonly from: string
  readonly to: string
  readonly subject: string | null
  readonly deadline: string | null
  readonly overdue: boolean
}

export interface AskRow {
  readonly id: string
  readonly result: MessageRow | null
  /** Does a session of the instance live now? */
  readonly live: boolean
}

export interface AgentRow {
  readonly role: string
  readonly instance: string
  readonly holder_run: string | null
  readonly since: string | null
  readonly model: string
  readonly family: string | null
  readonly state: RunState | null
}

export interface TaskRow {
  readonly id: string
  readonly title: string
  readonly body: string
  readonly project: string | null
  readonly assignee: string | null
  readonly state: 'open' | 'closed'
  readonly createdBy: string
  readonly createdAt: string
  readonly closedAt: string | null
  readonly latestPush: string | null
  readonly verdict: 'approve' | 'reject' | null
}

export interface PushRow {
  readonly id: string
  readonly at: string
  readonly task: string
  readonly project: string
  readonly ref: string
  readonly commit: string
  readonly run: string
  readonly instance: string
  readonly latest: boolean
}

export interface PushShowRow extends PushRow {
  /** The paths that it changes against main. */
  readonly files: readonly string[]
  /** Those that act by themselves once they are checked out or installed. */
  readonly acting: readonly string[]
  /** false: there are more of either than a list has room for. */
  readonly complete: boolean
}

/** What `task fetch` needs: the commit, and where it is. */
export interface FetchableRow {
  readonly task: string
  readonly project: string
  readonly push: string
  readonly commit: string
  /** Does the last verdict on that push approve it? */
  readonly approved: boolean
  /** Every commit that was pushed to the task. */
  readonly earlier: readonly string[]
  readonly acting: readonly string[]
  /** false: `acting`, or the list of all paths that it changes, is longer than a list has room for. */
  readonly complete: boolean
  readonly repository: string
  /** An empty configuration for git. */
  readonly gitConfig: string
  /** null: the project is no longer configured. */
  readonly root: string | null
}

export interface RepositoryRow {
  readonly project: string
  readonly root: string
  readonly branch: string
  readonly repository: string
  /** The commit that agents start from; null: the repository is not made yet. */
  readonly main: string | null
  /** The root's branch was rewritten, and main stayed where it was. */
  readonly mainDiverged: boolean
  /** How many tasks have work in it. */
  readonly tasks: number
  /** Why the root cannot be read. */
  readonly problem: string | null
}

export interface ReviewRow {
  readonly request: string
  readonly at: string
  readonly task: string
  readonly push: string
  readonly commit: string
  readonly requestedBy: string
  readonly verdict: 'approve' | 'reject' | null
  readonly reviewer: string | null
  readonly note: string | null
  readonly state: 'open' | 'approved' | 'rejected' | 'stale'
}

export interface TimelineRow {
  readonly at: string
  readonly kind: 'launch' | 'refused' | 'message' | 'push' | 'request' | 'verdict' | 'close' | 'end' | 'host'
  readonly text: string
  readonly run: string | null
  readonly instance: string | null
  readonly task: string | null
  readonly ref: string | null
  /** Where this row stands: the next page is after it. */
  readonly cursor: string
}

export interface EnvRow {
  readonly env: string
  readonly business: string
  readonly instance: string | null
  readonly task: string | null
  readonly ownerRun: string | null
  readonly held: boolean
  readonly holderRun: string | null
  readonly sizeBytes: number
  readonly unsaved: readonly { readonly project: string; readonly reason: string }[]
  readonly envRoot: string
  /** Why it could not be looked at; the rest says nothing then. */
  readonly problem: string | null
}

export const USAGE_BY = ['role', 'instance', 'task', 'family', 'run'] as const
export type UsageBy = (typeof USAGE_BY)[number]

/** Tokens that requests to model providers took, counted by the gateway. */
export interface UsageRow {
  /** Of what `by` says; null: of no task. */
  readonly name: string | null
  readonly requests: number
  /** Requests whose answer broke off: they took more than is counted. */
  readonly incomplete: number
  readonly inputTokens: number
  readonly outputTokens: number
  readonly cacheReadTokens: number
  readonly cacheWriteTokens: number
}

export interface TrailHeadRow {
  readonly records: number
  readonly head: string
}

export interface TrailVerifyRow extends TrailHeadRow {
  readonly ok: boolean
  readonly firstBad: number | null
}
