import { anySignal } from '../core/any-signal.ts'
import { AppError } from '../core/errors.ts'
import type { LaunchOrder } from '../launch/admit.ts'
import { launchSession } from '../launch/launch.ts'
import type { LaunchDeps } from '../launch/ports.ts'
import type { LaunchRow } from '../protocol/rows.ts'

/** Launches in progress are known, so that a stop can wait until each is there or undone, and one can be cancelled. */
export interface Launcher {
  /** Runs a launch and remembers it until it is over. */
  readonly launch: (order: LaunchOrder) => Promise<LaunchRow>
  /** Ends the launch of that run and waits until it is over: true when it was undone, false when it is none or became a session all the same. */
  readonly cancelLaunch: (run: string) => Promise<boolean>
  /** Ends every launch, also those that have no run yet. */
  readonly cancelLaunches: () => void
  /** Resolves when no launch is in progress. */
  readonly launchesSettled: () => Promise<void>
}

interface InProgress {
  /** null before its gate: two orders for one instance may be there, and only one of them passes. */
  readonly run: () => string | null
  readonly cancel: AbortController
  /** Never rejects; true: it was undone. */
  readonly undone: Promise<boolean>
}

const stopIt = ({ cancel }: InProgress): void => cancel.abort(new AppError('interrupted', 'it was stopped while it was being launched'))

export function createLauncher(launching: LaunchDeps, start: typeof launchSession = launchSession): Launcher {
  const running = new Set<InProgress>()
  return {
    launch(order) {
      const cancel = new AbortController()
      let passed: string | null = null
      const stopping = anySignal([launching.stopping, cancel.signal])
      const launch = start({ ...launching, stopping: stopping.signal, admitted: (run) => void (passed = run) }, order)
      const undone = launch.then(
        () => false,
        () => true,
      )
      const entry: InProgress = { run: () => passed, cancel, undone }
      running.add(entry)
      void undone.then(() => {
        running.delete(entry)
        stopping[Symbol.dispose]()
      })
      return launch
    },
    async cancelLaunch(run) {
      const found = [...running].find((entry) => entry.run() === run)
      if (found === undefined) return false
      stopIt(found)
      return found.undone
    },
    cancelLaunches: () => running.forEach(stopIt),
    async launchesSettled() {
      await Promise.all([...running].map(({ undone }) => undone))
    },
  }
}
