import { setTimeout as sleep } from 'node:timers/promises'
import type { Log } from '../core/log.ts'
import { systemClock } from '../core/clock.ts'
import { bootId, isAlive } from '../core/proc.ts'
import type { Failpoint } from '../launch/failpoints.ts'
import { undoCutOffClaim } from '../envroot/cut-off.ts'
import { isEnvRootHeld } from '../envroot/list.ts'
import type { PinnedDir } from '../envroot/pin.ts'
import type { ClaimDeps } from '../envroot/ports.ts'
import { removeRunDirectory } from '../envroot/rundir.ts'
import type { Broker } from '../bus/broker.ts'
import type { Capabilities } from '../launch/capabilities.ts'
import type { LaunchBroker } from '../launch/store-ports.ts'
import { type LeftRun, recoverRuns } from '../launch/recover.ts'
import { killLeftover } from '../sandbox/leftover.ts'
import type { SessionRecord } from '../store/session-types.ts'
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
async function waitForLock({ envRoots, log }: RecoveryDeps, { business, env, run }: SessionRecord): Promise<void> {
  const end = systemClock.monotonic() + LOCK_MS
  while (isEnvRootHeld(envRoots, business, env)) {
    if (systemClock.monotonic() > end) {
      // a busy root concerns the launch that wants it, not this start: the claim will refuse
      log.warn({ run, env }, 'env root still held by a process that nothing here has recorded')
      return
    }
    await sleep(LOOK_MS)
  }
}

/** What a launch that was cut off left behind. A tree that cannot be removed stays, and holds up neither this start nor a later launch. */
async function removeTraces({ dataRoot, envRoots, log }: RecoveryDeps, { business, env, run, envOutcome }: SessionRecord): Promise<void> {
  try {
    removeRunDirectory({ dataRoot }, business, run)
  } catch (error) {
    log.warn({ err: error, run }, 'the directory of a launch that was cut off stays')
  }
  // before its outcome was recorded, a continuation may have made a root of its own
  const made = envOutcome === null ? [env, `${env}.${run}`] : [env]
  for (const name of made) {
    await undoCutOffClaim(envRoots, { business, env: name, run, created: envOutcome === 'created' }).catch((error: unknown) => {
      log.warn({ err: error, run, env: name }, 'the env root of a launch that was cut off stays')
    })
  }
}

/** Inside a transaction: the PM is told what a hard death ended, and on which tasks. */
function tellPm({ broker, pm }: RecoveryDeps, ended: readonly LeftRun[]): void {
  if (pm === null) return
  const what = ended.map(({ run, instance, task }) => `${run} (${instance}${task === null ? '' : `, task ${task}`})`)
  broker.messages.hostNote(pm, 'the bus host died; sessions were lost', `Ended as host-lost: ${what.join(', ')}.`)
}

/** Runs that have ended of late, among which those are whose pid 1 hangs in the kernel: its host gave it up. */
const MAX_ENDED = 1000

/** What an earlier host left: runs without their end, and ended ones that are not cleaned up. */
export function leftRuns({ sessions }: Pick<Store, 'sessions'>): readonly SessionRecord[] {
  const boot = bootId()
  const lives = ({ state, init, bootId: at }: SessionRecord): boolean => state === 'ended' && at === boot && init !== null && isAlive(init)
  const recent: SessionRecord[] = []
  for (const run of sessions.listAll()) if (recent.push(run) >= MAX_ENDED) break
  return [...sessions.live(), ...recent.filter(lives)]
}

/** Survivors killed, then runs ended, each once; launches that were cut off are undone. Idempotent. */
export function recover(deps: RecoveryDeps): Promise<void> {
  const { store, launchBroker, say, failpoint, log, capabilities } = deps
  return recoverRuns({
    store,
    broker: launchBroker,
    capabilities,
    clock: systemClock,
    log,
    failpoint,
    left: leftRuns(store),
    killLeftover: (run) => killLeftover(run, run),
    waitForLock: (run) => waitForLock(deps, run),
    removeTraces: (run) => removeTraces(deps, run),
    tell: (ended) => {
      tellPm(deps, ended)
    },
    say,
  })
}
