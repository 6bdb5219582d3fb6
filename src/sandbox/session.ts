import type { Writable } from 'node:stream'
import { AppError } from '../core/errors.ts'
import { inTime } from '../core/in-time.ts'
import { signalProcess } from '../core/kernel.ts'
import type { Log } from '../core/log.ts'
import { childrenOf, isAlive, type ProcessId, startTimeOf, waitGone } from '../core/proc.ts'
import type { Bwrap } from './bwrap.ts'
import type { CgroupLeaf, CgroupParent } from './cgroup.ts'
import { killGroup } from './collect.ts'
import { GONE_MS, killInit, type SandboxEnd, watchEnd } from './end.ts'
import { type AppliedLimits, applyLimits, type EnforcedLimits } from './limits.ts'
import type { SandboxPlan } from './plan.ts'
import { sandboxDifferences } from './readback.ts'
import { spawnBwrap, type Spawned } from './spawn.ts'
import { filteredRunner, hasDropped, tooLate, until } from './wait.ts'
import { spawnFailed } from './spawn-failed.ts'

export interface SessionDeps {
  readonly bwrap: Bwrap
  readonly cgroup: CgroupParent | null
  readonly log: Log
}

export interface SessionRequest {
  readonly plan: SandboxPlan
  readonly command: readonly string[]
  /** The env root's lock, held by pid 1 from now on, by nothing else inside. The caller keeps and closes its own. */
  readonly lockFd: number
  /** The command's stderr, and bubblewrap's own. Its stdout is /dev/null. */
  readonly stderrFd: number
  readonly signal?: AbortSignal
  /** How long bubblewrap may take to make pid 1; 10 s when not given. */
  readonly startMs?: number
}

/** A sandbox, from its start behind a block to the last of its processes. */
export interface SessionSandbox extends AsyncDisposable {
  readonly monitor: ProcessId
  readonly init: ProcessId
  /** What of the plan's limits is kept, and how; known once settled. */
  readonly limits: EnforcedLimits
  /** Waits until the sandbox is made, then compares it with the plan. `sandbox-mismatch`, `limits-unavailable`, `spawn-failed`: it has been ended. */
  settle(signal?: AbortSignal): Promise<void>
  /** Lets the command start; the runner, once it and pid 1 are under the filter. `spawn-failed`, `sandbox-mismatch`: it has been ended. */
  unblock(signal?: AbortSignal): Promise<ProcessId>
  readonly stdin: Writable
  /** Never rejects. Resolves when nothing of it is left, or what is left hangs in the kernel. */
  readonly ended: Promise<SandboxEnd>
  /** false: there is no runner yet, no more, or none that can be told from a later process. */
  signalRunner(signal: NodeJS.Signals): boolean
  /** SIGKILL of everything inside; resolves when all of it is gone, or after 11 s. Idempotent. */
  kill(): Promise<void>
}

/** A monitor that lives on so long after its pid 1 was killed is stopped or stuck. */
const MONITOR_MS = 1000
const ABANDON_MS = 2000
const START_MS = 10_000

/** bubblewrap tells pid 1 before it makes the mounts; stuck before that (a dead mount on the way to its program), it tells nothing. */
async function findInit(spawned: Spawned, { signal, startMs = START_MS }: SessionRequest): Promise<ProcessId | null> {
  const pid = await inTime(spawned.status.childPid, { timeoutMs: startMs, signal }, () => tooLate('start', startMs))
  const start = pid === null ? null : startTimeOf(pid)
  return pid === null || start === null ? null : { pid, start }
}

function stopAndList(monitor: ProcessId, log: Log): readonly ProcessId[] {
  try {
    signalProcess(monitor, 'SIGSTOP')
    return childrenOf(monitor.pid).map((pid) => ({ pid, start: startTimeOf(pid) ?? '' }))
  } catch (error) {
    // its command will start, find no capability and end
    log.warn({ err: error, monitor }, 'what a sandbox has started cannot be told')
    return []
  }
}

/** Ends what has not become a session yet. Stopped first, the monitor makes no pid 1 behind our back; one that were left would start its command when the block closes. */
async function abandon({ child, monitor }: Spawned, log: Log): Promise<void> {
  const children = stopAndList(monitor, log)
  killGroup(child)
  const signal = AbortSignal.timeout(ABANDON_MS)
  await Promise.all(children.map((left) => killInit(left, { log, signal })))
  await Promise.all([monitor, ...children].map((left) => waitGone(left, { timeoutMs: ABANDON_MS })))
  for (const stream of child.stdio) stream?.destroy()
}

const UNLIMITED: AppliedLimits = { enforced: {}, leaf: null }

async function limit(deps: SessionDeps, { env, limits }: SandboxPlan, init: ProcessId): Promise<AppliedLimits> {
  try {
    return await applyLimits(deps, init, `run-${env.MOSAIC_RUN_ID ?? String(init.pid)}`, limits)
  } catch (error) {
    // of a sandbox that is gone the read-back has more to say
    if (isAlive(init)) throw error
    return UNLIMITED
  }
}

/** Waits until the sandbox is made, and compares it with its plan. */
async function readBack({ bwrap }: SessionDeps, { plan, stderrFd }: SessionRequest, init: ProcessId, signal: AbortSignal | undefined): Promise<void> {
  if ((await until(init, 'settle', signal, () => hasDropped(init.pid))) === null) throw spawnFailed(bwrap.path, stderrFd)
  const differences = sandboxDifferences(init.pid, plan)
  if (differences.length > 0)
    throw new AppError('sandbox-mismatch', `the sandbox is not what was planned: ${differences.join('; ')}`, { data: { differences } })
}

/** false: it is gone, or cannot be told from a later process: whoever wanted it to end then ends its sandbox. */
function trySignal(target: ProcessId, signal: NodeJS.Signals, log: Log): boolean {
  try {
    return signalProcess(target, signal)
  } catch (error) {
    log.warn({ err: error, target }, 'a runner cannot be signalled')
    return false
  }
}

function createSession(deps: SessionDeps, request: SessionRequest, spawned: Spawned, init: ProcessId): SessionSandbox {
  const { plan } = request
  const { child, monitor } = spawned
  let runner: ProcessId | null = null
  let limits = UNLIMITED
  let limiting = Promise.resolve()
  const hopeless = new AbortController()
  const leaf = (): Promise<CgroupLeaf | null> => limiting.then(() => limits.leaf)
  const ended = watchEnd({ child, status: spawned.status, init, leaf, hopeless: hopeless.signal, log: deps.log })

  const kill = async (): Promise<void> => {
    const killed = killInit(init, { log: deps.log, signal: hopeless.signal })
    await limits.leaf?.kill().catch(() => undefined)
    const timers = [setTimeout(() => killGroup(child), MONITOR_MS), setTimeout(() => hopeless.abort(), MONITOR_MS + GONE_MS)]
    await Promise.all([killed, ended])
    for (const timer of timers) clearTimeout(timer)
  }
  const orKill = async <T>(step: () => Promise<T>): Promise<T> => {
    try {
      return await step()
    } catch (error) {
      await kill()
      throw error
    }
  }
  const release = async (signal: AbortSignal | undefined): Promise<ProcessId> => {
    spawned.block.end('x')
    const found = await until(init, 'start its command', signal, () => filteredRunner(init))
    if (found === null) throw spawnFailed(deps.bwrap.path, request.stderrFd)
    runner = found
    return found
  }
  return {
    monitor,
    init,
    get limits() {
      return limits.enforced
    },
    settle: (signal) =>
      orKill(async () => {
        const limited = limit(deps, plan, init).then((applied) => void (limits = applied))
        limiting = limited.catch(() => undefined)
        await Promise.all([limited, readBack(deps, request, init, signal)])
      }),
    unblock: (signal) => orKill(() => release(signal)),
    stdin: spawned.stdin,
    ended,
    signalRunner: (signal) => runner !== null && trySignal(runner, signal, deps.log),
    kill,
    [Symbol.asyncDispose]: kill,
  }
}

/**
 * Starts a session's sandbox, blocked before its command. It outlives this process. Throws `sandbox-unavailable`, `spawn-failed` with bubblewrap's own words,
 * or the signal's reason; nothing is left then.
 */
export async function openSession(deps: SessionDeps, request: SessionRequest): Promise<SessionSandbox> {
  const { plan, command, lockFd, stderrFd, signal } = request
  signal?.throwIfAborted()
  const spawned = await spawnBwrap(deps.bwrap, { plan, command, outlivesHost: true, lockFd, stdout: 'ignore', stderr: stderrFd }, signal)
  try {
    const init = await findInit(spawned, request)
    if (init === null) throw spawnFailed(deps.bwrap.path, stderrFd)
    return createSession(deps, request, spawned, init)
  } catch (error) {
    await abandon(spawned, deps.log)
    throw error
  }
}
