import { toTimestamp } from '../core/clock.ts'
import type { EndedRun, LaunchDeps, ProcessId } from './ports.ts'
import { recordEnd } from './record-end.ts'
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

interface RecoverDeps extends Pick<LaunchDeps, 'store' | 'broker' | 'capabilities' | 'clock' | 'log' | 'failpoint'> {
  readonly left: () => readonly LeftRun[]
  /** Kills what is left of it by pid, start time and boot id (also when stopped) and waits until it is gone. */
  readonly killLeftover: (run: LeftRun) => Promise<void>
  /** Waits until the env root's lock can be had: the proof that nothing of the earlier execution lives. */
  readonly waitForLock: (run: LeftRun) => Promise<void>
  /** Removes what a launch that was cut off left: its run directory. */
  readonly removeRunDirectory: (run: LeftRun) => Promise<void>
  readonly say: (line: string) => void
}

async function undoLaunch(deps: RecoverDeps, run: LeftRun): Promise<void> {
  await deps.removeRunDirectory(run)
  deps.failpoint('recover.undo')
  deps.store.writeNow(() => {
    deps.store.sessions.remove(run.run)
    const why = `the bus host died during this launch, before ${toTimestamp(deps.clock.now())}`
    deps.store.launchLog.append({
      event: 'refused',
      run: null,
      instance: run.instance,
      fields: { by: run.launchedBy, code: 'internal', why, step: null, task: run.task },
    })
    deps.store.trail.append({
      kind: 'launch.refused',
      subject: run.instance,
      actor: { kind: 'host', name: 'host', run: null },
      body: { code: 'internal', by: run.launchedBy },
    })
  })
}

/** What an earlier host left of one run; idempotent, so that a crash in here costs nothing. */
async function recoverRun(deps: RecoverDeps, run: LeftRun): Promise<LeftRun | null> {
  deps.failpoint('recover.kill')
  await deps.killLeftover(run)
  deps.failpoint('recover.lock')
  await deps.waitForLock(run)
  deps.failpoint('recover.end')
  if (run.state === 'starting') {
    await undoLaunch(deps, run)
    return null
  }
  const first = recordEnd(deps, run, { reason: 'host-lost', exitCode: null, signal: null }, null)
  deps.say(
    first
      ? `run ${run.run} (${run.instance}) from an earlier host ended: host-lost`
      : `run ${run.run} (${run.instance}) from an earlier host was already ended`,
  )
  return first ? run : null
}

/** After a hard death: kills survivors, ends each of their runs once, undoes launches that were cut off. Returns the runs it ended. */
export async function recoverRuns(deps: RecoverDeps): Promise<readonly LeftRun[]> {
  const recovered = await Promise.all(deps.left().map((run) => recoverRun(deps, run)))
  return recovered.filter((run) => run !== null)
}
