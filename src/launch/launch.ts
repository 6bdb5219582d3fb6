import { AppError, codeOf } from '../core/errors.ts'
import { createScope } from '../core/scope.ts'
import type { LaunchRow } from '../protocol/rows.ts'
import { admit, type LaunchOrder, refuse, toRefused } from './admit.ts'
import { commit, giveCapability, tidyState, writeTexts } from './commit.ts'
import { claimEnvRoot, prepare } from './env-claim.ts'
import type { LaunchDeps, StartedRun } from './ports.ts'
import { startRunner } from './start-runner.ts'
import type { EnvClaim } from './tree-ports.ts'
import type { Launch, Made } from './under-way.ts'

/** Two works at once, of which the failure of one ends the other; the one that failed first is told. */
async function bothOrNone<First, Second>(
  stopping: AbortSignal,
  first: (signal: AbortSignal) => Promise<First>,
  second: (signal: AbortSignal) => Promise<Second>,
): Promise<[First, Second]> {
  const failed = new AbortController()
  const signal = AbortSignal.any([stopping, failed.signal])
  const orEndBoth = async <T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> => {
    try {
      return await work(signal)
    } catch (error) {
      failed.abort(error)
      throw error
    }
  }
  const works = [orEndBoth(first), orEndBoth(second)] as const
  // nothing may run on behind a failure
  await Promise.allSettled(works)
  if (failed.signal.aborted) throw failed.signal.reason
  return Promise.all(works)
}

/**
 * Steps 3 to 7. The sandbox is made, and the runner's Node started in it, while the workspace is prepared: the runner reads and does nothing before it
 * is given its capability, and that waits for both. When one of the two fails, the other is ended.
 */
async function prepareAndStart(launch: Launch, claim: EnvClaim): Promise<Made> {
  const [projects, waiting] = await bothOrNone(
    launch.deps.stopping,
    (signal) => prepare(launch, claim, signal),
    (signal) => startRunner(launch, claim, signal),
  )
  claim.assertSame()
  return { ...waiting, projects }
}

/** Steps 2 to 7. */
async function build(launch: Launch): Promise<Made> {
  launch.deps.failpoint('launch.claim')
  const made = await prepareAndStart(launch, await claimEnvRoot(launch))
  writeTexts(launch, made)
  await tidyState(launch, made)
  return made
}

function toStarted({ admission }: Launch, { parts, directory, opened }: Made, startedMs: number): StartedRun {
  const { run, instance, role, task, launchedBy, launchedByKind } = admission.row
  const { limits } = admission.config.roleOf(instance)
  return { run, instance, role, task, launchedBy, launchedByKind, startedMs, claim: parts.claim, directory, sandbox: opened.sandbox, limits }
}

/** A launch that was cancelled is refused with the reason for it; without one, the host is stopping. */
const whyStopped = ({ reason }: AbortSignal, cause: unknown): AppError =>
  reason instanceof AppError ? reason : new AppError('host-stopping', 'the bus host is stopping', { cause })

/** Undoes what was done, last first, and leaves only the refusal. */
async function giveUp({ deps, order, admission, undo }: Launch, cause: unknown): Promise<AppError> {
  deps.failpoint('launch.undo')
  await undo.close().catch((error: unknown) => {
    deps.log.error({ err: error, run: admission.row.run }, 'undoing a launch failed')
  })
  const refusal = deps.stopping.aborted ? whyStopped(deps.stopping, cause) : cause
  if (codeOf(refusal) === 'internal') deps.log.error({ err: cause, run: admission.row.run }, 'launch failed')
  deps.failpoint('launch.refuse')
  return refuse(deps, order, toRefused(refusal), admission.row)
}

/** Step 9. The run is there: what fails from now on is its end, and no failure of its launch. */
function handOver(launch: Launch, { opened }: Made): void {
  const { deps, admission } = launch
  const { run, instance, role, business } = admission.row
  const grants = new Set(admission.config.roleOf(instance).grants)
  try {
    giveCapability(launch, opened, { kind: 'session', business, role, instance, run, grants })
  } catch (error) {
    deps.log.error({ err: error, run }, 'a session was given no capability')
    deps.fail(run)
  }
}

/**
 * A launch in its ten steps. Before the commit a failure undoes everything, in reverse, and is a refusal with the gate's or
 * the step's code, written to the launch log; from the commit on the reply is ok and a failure is the run's one end.
 */
export async function launchSession(deps: LaunchDeps, order: LaunchOrder): Promise<LaunchRow> {
  deps.failpoint('launch.admit')
  const admission = await admit(deps, order)
  deps.admitted?.(admission.row.run)
  const launch: Launch = { deps, order, admission, undo: createScope() }
  const startedMs = deps.clock.monotonic()
  const made = await build(launch)
    .then((built) => {
      commit(launch, built)
      return built
    })
    .catch(async (error: unknown) => {
      throw await giveUp(launch, error)
    })
  deps.failpoint('launch.adopt')
  deps.adopt(toStarted(launch, made, startedMs))
  handOver(launch, made)
  const { run, instance, harness, model } = admission.row
  deps.failpoint('launch.reply')
  return { run, instance, harness, model, env: made.parts.claim.outcome }
}
