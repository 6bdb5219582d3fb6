import type { ErrorCode } from '../core/codes.ts'
import type { Grant } from '../protocol/common.ts'

/** Who asks for a launch. The founder passes the same gate but for step 3 and the first half of step 9. */
export type Asker =
  | { readonly kind: 'founder'; readonly name: string }
  | { readonly kind: 'session'; readonly name: string; readonly role: string; readonly run: string; readonly grants: ReadonlySet<Grant> }

export interface GateRequest {
  readonly instance: string
  readonly task: string | null
  readonly asker: Asker
}

/** One configured instance as the gate needs it. */
export interface GateInstance {
  readonly role: string
  readonly model: string
  readonly family: string | null
  readonly harness: string
}

/** What had to be looked up outside the store: programs, credentials, the probe, the disk. */
export interface GateFacts {
  /** Why no session of the harness can run here; null when one can. */
  readonly harness: { readonly code: 'harness-missing' | 'no-session-credential'; readonly why: string } | null
  readonly unavailable: { readonly code: 'sandbox-unavailable' | 'disk-full' | 'limits-unavailable'; readonly why: string } | null
}

export interface GateState {
  readonly launchBy: string | null
  readonly listed: readonly string[]
  readonly instances: ReadonlyMap<string, GateInstance>
  /** Rows `starting`, `running`, `stopping`: slots are counted from these, never from a counter. */
  readonly live: readonly { readonly run: string; readonly instance: string; readonly family: string }[]
  readonly max: Readonly<Record<string, number>>
  /** Families that a provider limits, with the time at which it takes requests again (RFC 3339). */
  readonly limited: Readonly<Record<string, string>>
  readonly stopping: boolean
  /** null: not looked up yet. The gate then judges steps 3 to 6 and passes the rest. */
  readonly facts: GateFacts | null
  readonly task: { readonly state: 'open' | 'closed'; readonly assignee: string | null } | null
}

export interface GatePass {
  readonly ok: true
  readonly target: GateInstance & { readonly family: string }
}
export interface GateRefusal {
  readonly ok: false
  /** The number of the step in docs/protocol.md that decided. */
  readonly step: number
  readonly code: ErrorCode
  readonly why: string
}

type Check = (request: GateRequest, state: GateState) => Omit<GateRefusal, 'ok' | 'step'> | null

const toList = (names: readonly string[]): string => (names.length === 0 ? 'nobody' : names.join(', '))

const listed: Check = ({ instance, asker }, { listed: names, instances }) => {
  if (asker.kind === 'session' && !names.includes(instance)) {
    return { code: 'instance-not-listed', why: `launch.instances lists ${toList(names)}` }
  }
  return instances.has(instance) ? null : { code: 'instance-not-listed', why: `the configuration has ${toList([...instances.keys()])}` }
}

const free: Check = ({ instance }, { live }) => {
  const holder = live.find((row) => row.instance === instance)
  return holder === undefined ? null : { code: 'instance-running', why: `run ${holder.run} holds ${instance}` }
}

const family: Check = ({ instance }, { instances }) => {
  const target = instances.get(instance)
  return target?.family === null ? { code: 'unknown-model-family', why: `no family has a pattern for the model ${target.model}` } : null
}

const room: Check = ({ instance }, { instances, live, max, limited }) => {
  const name = instances.get(instance)?.family ?? ''
  const used = live.filter((row) => row.family === name).length
  const most = Object.hasOwn(max, name) ? (max[name] ?? 0) : 0
  if (used >= most) return { code: 'capacity-full', why: `${String(used)} of ${String(most)} sessions of the family ${name} are live` }
  const retryAt = limited[name]
  return retryAt === undefined ? null : { code: 'rate-limited', why: `the provider takes requests for the family ${name} again at ${retryAt}` }
}

const harness: Check = (_request, { facts }) => facts?.harness ?? null

const machine: Check = (_request, { facts, stopping }) => {
  if (facts?.unavailable) return facts.unavailable
  return stopping ? { code: 'host-stopping', why: 'the bus host is stopping' } : null
}

const permitted: Check = ({ asker, instance, task }, state) => {
  if (asker.kind === 'session' && (asker.role !== state.launchBy || !asker.grants.has('role.launch'))) {
    return { code: 'not-permitted', why: `launch.by is ${state.launchBy ?? 'nobody'}, and the role ${asker.role} asked` }
  }
  return task === null ? null : judgeTask(task, instance, state.task)
}

function judgeTask(id: string, instance: string, task: GateState['task']): ReturnType<Check> {
  if (task === null) return { code: 'task-not-found', why: `there is no task ${id}` }
  if (task.state === 'closed') return { code: 'task-closed', why: `task ${id} is closed` }
  if (task.assignee !== null && task.assignee !== instance) return { code: 'not-permitted', why: `task ${id} is assigned to ${task.assignee}` }
  return null
}

/** Steps 3 to 9 in the order of the contract; 1 and 2 belong to the socket. */
const STEPS: readonly (readonly [step: number, check: Check])[] = [
  [3, listed],
  [4, free],
  [5, family],
  [6, room],
  [7, harness],
  [8, machine],
  [9, permitted],
]

/** Up to here nothing outside the store has to be looked up. */
const LAST_STEP_WITHOUT_FACTS = 6

/** Judges a launch: the first step that fails decides. Pure; `why` names the rule's numbers. Without facts it judges steps 3 to 6 and passes the rest. */
export function judgeLaunch(request: GateRequest, state: GateState): GatePass | GateRefusal {
  for (const [step, check] of STEPS) {
    if (state.facts === null && step > LAST_STEP_WITHOUT_FACTS) break
    const refusal = check(request, state)
    if (refusal !== null) return { ok: false, step, ...refusal }
  }
  const target = state.instances.get(request.instance)
  if (target === undefined || target.family === null) throw new Error(`the gate passed ${request.instance}, which it does not know`)
  return { ok: true, target: { ...target, family: target.family } }
}
