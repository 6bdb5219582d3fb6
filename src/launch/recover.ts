import { toTimestamp } from '../core/clock.ts'
import type { LaunchDeps } from './ports.ts'
import type { EndedRun, ProcessId } from './store-ports.ts'
import { writeEnd } from './record-end.ts'
import type { RunState } from '../core/states.ts'

/** A row that an earlier host left without an end, or an ended one whose processes may not be gone. */
export interface LeftRun extends EndedRun {
  readonly state: RunState
  readonly env: string
  readonly runDir: string
  readonly monitor: ProcessId | null
  readonly init: ProcessId | null
  readonly runner: ProcessId | null
  readonly bootId: string | null
}

interface RecoverDeps<Run extends LeftRun> extends Pick<LaunchDeps, 'store' | 'broker' | 'capabilities' | 'clock' | 'log' | 'failpoint'> {
  readonly left: readonly Run[]
  /** Kills what is left of it by pid, start time and boot id (also when stopped) and waits until it is gone. Throws when it does not go. */
  readonly killLeftover: (run: Run) => Promise<void>
  /** Waits until the env root's lock can be had: the proof that nothing of the earlier execution lives. */
  readonly waitForLock: (run: Run) => Promise<void>
  /** Removes what a launch that was cut off left: its run directory, and the env root that it made. Never rejects: what cannot be removed stays. */
  readonly removeTraces: (run: Run) => Promise<void>
  /** Inside the transaction of the ends: tells who is to know what was lost. */
  readonly tell: (ended: readonly Run[]) => void
  readonly say: (line: string) => void
}

/** An end is written also on a full disk. */
const END = { reserve: true } as const

function undoLaunch(deps: Pick<LaunchDeps, 'store' | 'clock'>, { run, instance, launchedBy, task }: LeftRun): void {
  const why = `the bus host died during this launch, before ${toTimestamp(deps.clock.now())}`
  deps.store.writeNow(() => {
    deps.store.sessions.remove(run)
    deps.store.launchLog.append({ event: 'refused', run: null, instance, fields: { by: launchedBy, code: 'internal', why, step: null, task } })
    const actor = { kind: 'host', name: 'host', run: null } as const
    deps.store.trail.append({ kind: 'launch.refused', subject: instance, actor, body: { code: 'internal', by: launchedBy } })
  }, END)
}

/** A process that hangs in the kernel (a dead mount) ends nobody's start: it holds its env root's lock, and whoever wants that root is refused. */
async function killOrLeave<Run extends LeftRun>({ killLeftover, waitForLock, failpoint, log }: RecoverDeps<Run>, run: Run): Promise<void> {
  failpoint('recover.kill')
  try {
    await killLeftover(run)
    failpoint('recover.lock')
    await waitForLock(run)
  } catch (error) {
    log.warn({ err: error, run: run.run, env: run.env }, 'what an earlier host left of a run does not go')
  }
}

/** Ends the processes of one run; a launch that was cut off is undone. */
async function clear<Run extends LeftRun>(deps: RecoverDeps<Run>, run: Run): Promise<void> {
  await killOrLeave(deps, run)
  if (run.state !== 'starting') return
  deps.failpoint('recover.traces')
  await deps.removeTraces(run)
  deps.failpoint('recover.undo')
  undoLaunch(deps, run)
}

/** All ends and the word about them in one transaction: a crash in here leaves all of it to the next host. */
function endAll<Run extends LeftRun>(deps: RecoverDeps<Run>, lost: readonly Run[]): ReadonlySet<Run> {
  const end = { reason: 'host-lost', exitCode: null, signal: null } as const
  deps.failpoint('recover.end')
  const first = deps.store.writeNow(() => {
    const ended = lost.filter((run) => writeEnd(deps, run, end, null))
    if (ended.length > 0) deps.tell(ended)
    return new Set(ended)
  }, END)
  deps.failpoint('recover.ended')
  return first
}

/** After a hard death: kills survivors, ends each of their runs once, undoes launches that were cut off. Each step idempotent. Throws what the store refuses, after all ends. */
export async function recoverRuns<Run extends LeftRun>(deps: RecoverDeps<Run>): Promise<void> {
  const { left } = deps
  // one that cannot be cleared keeps none of the others from its end
  const cleared = await Promise.allSettled(left.map((run) => clear(deps, run)))
  const lost = left.filter(({ state }) => state !== 'starting')
  const first = endAll(deps, lost)
  for (const run of lost) {
    deps.say(`run ${run.run} (${run.instance}) from an earlier host ${first.has(run) ? 'ended: host-lost' : 'was already ended'}`)
  }
  const failed = cleared.find(({ status }) => status === 'rejected')
  if (failed?.status === 'rejected') throw failed.reason
}
