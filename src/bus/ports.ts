import type { MessageState, RunState } from '../core/states.ts'
import type { Grant, MessageClass, SessionPrincipal } from '../protocol/common.ts'
import type { EndReason } from '../protocol/end-reasons.ts'
import type { SessionWord } from '../protocol/bus.ts'
import type { MessageRow, OwedRow, PushRow, ReviewRow, TaskRow, TrailRow } from '../protocol/rows.ts'

/** The configuration as it is now; asked for anew at each act, so that a reload binds at once. */
export interface Roster {
  readonly business: string
  /** The founder's name. */
  readonly founder: string
  /** The role that may launch. */
  readonly launchBy: string | null
  readonly instances: ReadonlyMap<string, { readonly role: string; readonly model: string; readonly family: string | null }>
  readonly grants: (role: string) => ReadonlySet<Grant>
  readonly projects: readonly string[]
}

/** What the broker must know of a run. */
export interface BrokerSession {
  readonly run: string
  readonly business: string
  readonly instance: string
  readonly state: RunState
  readonly task: string | null
  readonly claimedAt: string | null
  readonly launchedBy: string
  readonly launchedByKind: 'founder' | 'session'
}

export interface RunEnd {
  readonly reason: EndReason
  readonly exitCode: number | null
  readonly signal: string | null
}

export type Actor = TrailRow['actor']

/** Over which connection of which run a message was given. */
export interface Given {
  readonly run: string
  readonly connection: number
}

export interface NewMessage {
  readonly fromKind: 'founder' | 'session' | 'host'
  readonly fromRole: string
  readonly fromInstance: string
  readonly fromRun: string | null
  readonly to: string
  readonly class: MessageClass
  readonly subject: string | null
  readonly body: string
  readonly inReplyTo: string | null
  readonly deadline: string | null
  readonly failed: boolean
  readonly given: Given | null
}

/** What a run received, without its text. */
export interface GivenMessage {
  readonly id: string
  readonly from_instance: string
  readonly to: string
  readonly deaths: number
}

/** A REQUEST that is owed its answer, without its text. */
export type OwedMessage = Omit<OwedRow, 'overdue'>

/** Lists are read as their rows are taken: within one turn of the event loop, and nothing is written in between. */
interface Messages {
  insert(message: NewMessage): MessageRow
  get(id: string): MessageRow | null
  recipientOf(id: string): string | null
  waiting(instance: string, limit: number): Iterable<MessageRow>
  setDelivered(id: string, given: Given): void
  setState(id: string, state: MessageState): void
  acknowledge(id: string): boolean
  unread(to: string, fromRun: string, limit: number): number
  requeueConnection(run: string, connection: number): number
  givenTo(run: string): GivenMessage[]
  requeue(id: string, deaths: number): void
  owed(instance: string | null, after: string | null): Iterable<OwedMessage>
  owedBy(instance: string): Iterable<OwedMessage>
  owedCount(): number
  thread(id: string, after: string | null): Iterable<MessageRow>
  resultOf(id: string): MessageRow | null
  inbox(after: string | null): Iterable<MessageRow>
}

export interface TaskRecord extends TaskRow {
  readonly createdByKind: 'founder' | 'session'
}

interface Tasks {
  insert(task: Pick<TaskRecord, 'title' | 'body' | 'project' | 'assignee' | 'createdBy' | 'createdByKind'> & { readonly id: string | null }): TaskRecord
  get(id: string): TaskRecord | null
  list(filter: { readonly state?: TaskRow['state'] | undefined; readonly of?: string | undefined; readonly after?: string | undefined }): Iterable<TaskRecord>
  setAssignee(id: string, assignee: string): void
  setProject(id: string, project: string): void
  setClosed(id: string): void
}

interface Pushes {
  insert(push: Omit<PushRow, 'id' | 'at' | 'latest'>): PushRow
  get(id: string): PushRow | null
  latestOf(task: string): PushRow | null
  list(filter: { readonly task?: string | undefined; readonly after?: string | undefined }): Iterable<PushRow>
  pushersOf(task: string): string[]
}

interface Reviews {
  insert(request: { readonly push: string; readonly requestedBy: string }): ReviewRow
  get(request: string): ReviewRow | null
  openOf(push: string): ReviewRow | null
  judge(request: string, verdict: { readonly verdict: 'approve' | 'reject'; readonly reviewer: string; readonly note: string }): void
  list(filter: ReviewQuery): Iterable<Iterable<ReviewRow>>
}

interface ReviewQuery {
  readonly task?: string | undefined
  readonly state?: ReviewRow['state'] | undefined
  readonly of?: string | undefined
  readonly after?: string | undefined
}

export interface TrailQuery {
  readonly subject?: string | undefined
  readonly kind?: string | undefined
  readonly of?: string | undefined
  readonly after?: number | undefined
  readonly limit?: number | undefined
}

/** The store, as far as the broker uses it. Methods of the tables are called inside a transaction or only read. */
export interface BrokerStore {
  /** Runs fn in a transaction that is shared with others; resolves once it is durable. fn may run twice. */
  write<T>(fn: () => T): Promise<T>
  onCommit(effect: () => void): void
  onRollback(undo: () => void): void
  onChange(listener: () => void): () => void
  readonly sessions: {
    get(run: string): BrokerSession | null
    liveOf(instance: string): BrokerSession | null
    holderOf(instance: string): BrokerSession | null
    setClaimed(run: string, at: string | null): void
  }
  readonly trail: {
    append(entry: { readonly kind: string; readonly subject: string | null; readonly actor: Actor; readonly body: Readonly<Record<string, unknown>> }): TrailRow
    list(query: TrailQuery): Iterable<TrailRow>
  }
  readonly messages: Messages
  readonly tasks: Tasks
  readonly pushes: Pushes
  readonly reviews: Reviews
}

/** How many messages an instance's run may be given now (pause, turns per hour); poke() asks again. */
export interface DeliveryPolicy {
  /** At most so many; 0: none. */
  room(instance: string, run: string): number
  /** That many messages were given. */
  delivered(instance: string, run: string, messages: number): void
}

/** What the bus socket passes on to the parts that own runs. */
export interface BusPorts<Peer> {
  /** Whose live run's capability is it, seen from that peer? In the same time for every answer. */
  readonly authenticate: (cap: string, peer: Peer) => SessionPrincipal | null
  /** Ends that run, or undoes its launch; one that has ended meanwhile is no failure. */
  readonly stopSession: (run: string) => Promise<unknown>
  readonly runnerWord: (run: string, waitMs: number, signal: AbortSignal) => Promise<SessionWord>
  readonly appendTranscript: (run: string, entries: readonly Readonly<Record<string, unknown>>[]) => Promise<void>
}
