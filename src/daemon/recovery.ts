import { setTimeout as sleep } from 'node:timers/promises'
import { AppError } from '../core/errors.ts'
import type { Log } from '../core/log.ts'
import { systemClock } from '../core/clock.ts'
import type { Failpoint } from '../core/failpoint.ts'
import { isEnvRootHeld } from '../envroot/list.ts'
import type { PinnedDir } from '../envroot/pin.ts'
import type { ClaimDeps } from '../envroot/ports.ts'
import { removeRunDirectory } from '../envroot/rundir.ts'
import type { Broker } from '../bus/broker.ts'
import type { Capabilities } from '../launch/capabilities.ts'
import type { LaunchBroker } from '../launch/ports.ts'
import { type LeftRun, recoverRuns } from '../launch/recover.ts'
import { killLeftover } from '../sandbox/leftover.ts'
import type { SessionRecord } from '../store/sessions.ts'
import type { Store } from '../store/open.ts'

const LOCK_MS = 10_000
const LOOK_MS = 5

interface RecoveryDeps {
  readonly log: Log
  readonly store: Store
  readonly broker: Broker
  readonly launchBroker: LaunchBroker
  readonly capabilities: Capabilities
  readonly failpoint: Failpoint
  readonly dataRoot: PinnedDir
  readonly envRoots: ClaimDeps
  /** Who is told what a hard death ended. */
  readonly pm: string | null
  readonly say: (line: string) => void
}

/** The lock of a run that was killed is free within milliseconds of its last process; nothing tells when, so we look. */
async function waitForLock({ envRoots }: RecoveryDeps, { business, env, run }: SessionRecord): Promise<void> {
  const end = systemClock.monotonic() + LOCK_MS
  while (isEnvRootHeld(envRoots, business, env)) {
    if (systemClock.monotonic() > end) {
      throw new AppError('env-root-busy', `the env root ${env} of run ${run} is still held by a process that nothing here has recorded`, {
        hint: 'mosaic env list',
      })
    }
    await sleep(LOOK_MS)
  }
}

/** The PM is told what a hard death ended, and on which tasks. */
function tellPm({ store, broker, pm }: RecoveryDeps, ended: readonly LeftRun[]): void {
  if (pm === null || ended.length === 0) return
  const what = ended.map(({ run, instance, task }) => `${run} (${instance}${task === null ? '' : `, task ${task}`})`)
  store.writeNow(() => broker.messages.hostNote(pm, 'the bus host died; sessions were lost', `Ended as host-lost: ${what.join(', ')}.`))
}

/** Survivors killed, then runs ended, each once; launches that were cut off are undone. Idempotent. */
export async function recover(deps: RecoveryDeps): Promise<void> {
  const left = deps.store.sessions.notEnded()
  const records = new Map(left.map((record) => [record.run, record]))
  const ended = await recoverRuns({
    store: deps.store,
    broker: deps.launchBroker,
    capabilities: deps.capabilities,
    clock: systemClock,
    log: deps.log,
    failpoint: deps.failpoint,
    left: () => left,
    killLeftover: (run) => killLeftover(run, run),
    waitForLock: (run) => {
      const record = records.get(run.run)
      return record === undefined ? Promise.resolve() : waitForLock(deps, record)
    },
    removeRunDirectory: (run) => {
      const record = records.get(run.run)
      if (record !== undefined) removeRunDirectory({ dataRoot: deps.dataRoot }, record.business, record.run)
      return Promise.resolve()
    },
    say: deps.say,
  })
  tellPm(deps, ended)
}
