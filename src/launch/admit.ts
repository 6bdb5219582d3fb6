import { AppError, codeOf, messageOf } from '../core/errors.ts'
import { createRunId } from '../core/ids.ts'
import type { Principal } from '../protocol/common.ts'
import { join } from 'node:path'
import { type Asker, type GateFacts, type GatePass, type GateRefusal, type GateRequest, judgeLaunch } from './gate.ts'
import type { LaunchConfig, LaunchDeps } from './ports.ts'
import type { LaunchTask, StartingRow } from './store-ports.ts'

export interface LaunchOrder {
  readonly instance: string
  readonly task: string | null
  readonly request: string | null
  readonly mode: 'keep' | 'fresh' | 'continue'
  /** With mode `continue`: the run to go on with; null: the instance's last. */
  readonly run: string | null
  readonly discard: boolean
  readonly asker: Asker
}

/** A launch that passed the gate: its row `starting` is written. */
export interface Admission {
  readonly row: StartingRow
  readonly target: GatePass['target']
  readonly task: LaunchTask | null
  readonly config: LaunchConfig
}

/** Judges the order with what is known now; `facts` null leaves steps 7 to 9's look-ups out. Call inside a transaction. */
function judge(deps: LaunchDeps, config: LaunchConfig, request: GateRequest, facts: GateFacts | null): GatePass | GateRefusal {
  const { launch } = config.business
  return judgeLaunch(request, {
    launchBy: launch.by,
    listed: launch.instances,
    instances: config.instances,
    live: deps.store.sessions.live(),
    max: launch.max,
    limited: deps.limited(),
    stopping: deps.stopping.aborted,
    facts,
    task: request.task === null ? null : deps.broker.task(request.task),
  })
}

export const actorOf = (asker: Asker): { kind: 'founder' | 'session'; name: string; run: string | null } =>
  asker.kind === 'founder' ? { kind: 'founder', name: asker.name, run: null } : { kind: 'session', name: asker.name, run: asker.run }

export const principalOf = (asker: Asker, business: string): Principal =>
  asker.kind === 'founder'
    ? { kind: 'founder', name: asker.name }
    : { kind: 'session', business, role: asker.role, instance: asker.name, run: asker.run, grants: asker.grants }

type Refused = Omit<GateRefusal, 'ok' | 'step'> & { readonly step?: number; readonly hint?: string }

/** Whatever a step threw, as the refusal that it is. */
export function toRefused(error: unknown): Refused {
  const code = codeOf(error)
  const hint = error instanceof AppError ? error.hint : undefined
  return { code, why: code === 'internal' ? `the bus host failed: ${messageOf(error)}` : messageOf(error), ...(hint === undefined ? {} : { hint }) }
}

function recordRefusal({ store }: LaunchDeps, { instance, asker, task }: LaunchOrder, { code, why, step }: Refused, run: string | null): void {
  const act = (): void => {
    if (run !== null) store.sessions.remove(run)
    store.launchLog.append({ event: 'refused', run: null, instance, fields: { by: asker.name, code, why, step: step ?? null, task } })
    store.trail.append({ kind: 'launch.refused', subject: instance, actor: actorOf(asker), body: { code, by: asker.name } })
    if (code === 'not-permitted' && asker.kind === 'session') {
      store.trail.append({ kind: 'action.denied', subject: instance, actor: actorOf(asker), body: { grant: 'role.launch', instance } })
    }
  }
  // a row that stayed would hold its instance: its removal is an end
  store.writeNow(act, { reserve: run !== null })
}

/** Writes a refusal into launch log and trail and makes the error that says it. `row`: the run that was begun and must leave nothing. */
export function refuse(deps: LaunchDeps, order: LaunchOrder, refusal: Refused, row?: StartingRow): AppError {
  const { code, why, hint } = refusal
  const { instance, asker } = order
  const record = (): void => recordRefusal(deps, order, refusal, row?.run ?? null)
  try {
    record()
  } catch (error) {
    if (row === undefined) throw error
    // the refusal is told all the same; the instance waits until there is room to say so
    deps.log.error({ err: error, run: row.run }, 'recording a refusal failed, will be tried again')
    deps.keepTrying(row.run, record)
  }
  deps.log.info({ instance, code, why, by: asker.name }, 'launch refused')
  return new AppError(code, why, hint === undefined ? {} : { hint })
}

function toStartingRow(deps: LaunchDeps, config: LaunchConfig, order: LaunchOrder, target: GatePass['target']): StartingRow {
  const { asker, instance, task } = order
  const run = createRunId()
  const env = task === null ? instance : `${instance}--${task}`
  const runDir = deps.paths.runDir(run)
  return {
    run,
    business: config.business.id,
    instance,
    role: target.role,
    task,
    harness: target.harness,
    model: target.model,
    family: target.family,
    network: config.roleOf(instance).network,
    launchedBy: asker.name,
    launchedByKind: asker.kind,
    launchedByRun: asker.kind === 'session' ? asker.run : null,
    env,
    envRoot: deps.paths.envRoot(env),
    runDir,
    manifest: join(runDir, 'bundle', 'manifest.json'),
  }
}

/** A look that fails is a refusal as any other. */
async function lookUp(deps: LaunchDeps, order: LaunchOrder, target: GatePass['target'], config: LaunchConfig): Promise<GateFacts> {
  try {
    return await deps.facts(target, config)
  } catch (error) {
    if (codeOf(error) === 'internal') deps.log.error({ err: error, instance: order.instance }, 'a look before a launch failed')
    throw refuse(deps, order, toRefused(error))
  }
}

/**
 * Step 1 of a launch: the gate, and the row `starting` in the same transaction, so that two launches can't both pass.
 * What needs no look-up outside the store is judged first, so that a refusal is cheap. Throws the gate's code.
 */
export async function admit(deps: LaunchDeps, order: LaunchOrder): Promise<Admission> {
  const config = deps.config()
  const request: GateRequest = { instance: order.instance, task: order.task, asker: order.asker }
  const early = deps.store.writeNow(() => judge(deps, config, request, null))
  if (!early.ok) throw refuse(deps, order, early)
  const facts = await lookUp(deps, order, early.target, config)
  const decided = deps.store.writeNow(() => {
    const verdict = judge(deps, config, request, facts)
    if (!verdict.ok) return verdict
    const row = toStartingRow(deps, config, order, verdict.target)
    deps.store.sessions.insertStarting(row)
    return { ok: true, row, target: verdict.target, task: order.task === null ? null : deps.broker.task(order.task), config } as const
  })
  if (!decided.ok) throw refuse(deps, order, decided)
  return decided
}

/** What the gate would say now; nothing is written. */
export async function dryRun(deps: LaunchDeps, order: LaunchOrder): Promise<GatePass | GateRefusal> {
  const config = deps.config()
  const request: GateRequest = { instance: order.instance, task: order.task, asker: order.asker }
  const early = deps.store.writeNow(() => judge(deps, config, request, null))
  if (!early.ok) return early
  const facts = await deps.facts(early.target, config)
  return deps.store.writeNow(() => judge(deps, config, request, facts))
}
