import { AppError } from '../core/errors.ts'
import type { Principal, SessionPrincipal } from '../protocol/common.ts'
import { type Budget, createBudget, createMetered } from './budget.ts'
import type { BrokerContext } from './context.ts'
import { createDelivery } from './delivery.ts'
import { createEndRules, type RunEnded } from './ends.ts'
import { createHourly } from './hourly.ts'
import type { Connection } from './links.ts'
import { createMessageRules, type MessageRules } from './messages.ts'
import { createPermits, type Permits } from './permits.ts'
import type { BrokerSession, DeliveryPolicy, RunEnd } from './ports.ts'
import { createPushRules, type PushRules } from './pushes.ts'
import { createPost } from './post.ts'
import type { Receive } from './receive.ts'
import { createRecordRules, type RecordRules } from './records.ts'
import { createReviewRules, type OnApproved, type ReviewRules } from './reviews.ts'
import { createRoleRules, type RoleRules } from './roles.ts'
import { createTaskRules, type TaskRules } from './tasks.ts'

/** Records that a run may make in an hour, and denials of it that are recorded in one. */
const RECORDS_AN_HOUR = 600

export interface BrokerDeps extends BrokerContext {
  /** Default: always. */
  readonly policy?: DeliveryPolicy
  readonly onApproved?: OnApproved
}

/** All rules of messages, roles, tasks, reviews and records. Each act takes the principal whose right it is, never a name from a request. */
export interface Broker {
  /** Of what the runs make the store write; the doors that let a run write ask it first. */
  readonly budget: Budget
  readonly permits: Permits
  readonly roles: RoleRules
  readonly messages: MessageRules
  readonly tasks: TaskRules
  readonly pushes: PushRules
  readonly reviews: ReviewRules
  readonly records: RecordRules
  open(principal: SessionPrincipal): Connection
  connectionClosed(connection: Connection): Promise<void>
  /** Up to `max` messages over this connection, at once or as soon as one is there within waitMs. */
  readonly receive: Receive
  /** Asks the delivery policy again: after resume, after a turn's hour. */
  poke(instance: string): Promise<void>
  /** The live run of that instance, which the principal may end: one that its instance launched. Throws otherwise; by then another may live. */
  assertMayStop(principal: Principal, instance: string): Promise<string>
  /** Inside the transaction of the run's end: frees the role, gives back what it had, tells whom it concerns. */
  runEnded(session: BrokerSession, end: RunEnd): RunEnded
}

const ALWAYS: DeliveryPolicy = { room: () => Number.POSITIVE_INFINITY, delivered: () => undefined }

export function createBroker(given: BrokerDeps): Broker {
  const budget = createBudget(given.clock)
  const deps = { ...given, store: createMetered(given.store, budget) }
  const records = createHourly(deps.clock, RECORDS_AN_HOUR)
  const denials = createHourly(deps.clock, RECORDS_AN_HOUR)
  const delivery = createDelivery(deps, deps.policy ?? ALWAYS)
  const permits = createPermits(deps, denials)
  const post = createPost(deps, delivery)
  const messages = createMessageRules(deps, post)
  const tasks = createTaskRules(deps, permits)

  const assertMayStop = async (principal: Principal, instance: string): Promise<string> => {
    const about = { action: 'session.stop', subject: null, body: { instance } }
    await permits.demand(principal, 'role.launch', about)
    const session = deps.store.sessions.liveOf(instance)
    if (session === null) throw new AppError('not-running', `${JSON.stringify(instance)} does not run`)
    const own = principal.kind !== 'session' || (session.launchedByKind === 'session' && session.launchedBy === principal.instance)
    if (!own) await permits.deny(principal, 'role.launch', about, `${instance} was launched by somebody else`)
    await deps.store.write(() => permits.used(principal, 'role.launch', { ...about, subject: session.run }))
    return session.run
  }
  return {
    budget,
    permits,
    messages,
    tasks,
    roles: createRoleRules(deps),
    pushes: createPushRules(deps, permits, tasks, post),
    reviews: createReviewRules({ ...deps, permits, tasks, post, onApproved: deps.onApproved ?? (() => Promise.resolve()) }),
    records: createRecordRules(deps, permits, records),
    open: (principal) => delivery.open(principal),
    connectionClosed: (connection) => delivery.close(connection),
    receive: delivery.receive,
    poke: (instance) => delivery.poke(instance),
    assertMayStop,
    runEnded: createEndRules(deps, post, delivery, [records, denials, budget]),
  }
}
