import { AppError, messageOf } from '../core/errors.ts'
import type { Log } from '../core/log.ts'
import { signalProcess } from '../core/kernel.ts'
import { childrenOf, isAlive, type ProcessId, startTimeOf, waitGone } from '../core/proc.ts'
import { type Bwrap, failed } from './bwrap.ts'
import { collect, type Collected, killGroup } from './collect.ts'
import { killInit } from './end.ts'
import { applyPrlimit } from './limits.ts'
import type { SandboxPlan } from './plan.ts'
import { spawnBwrap, type Spawned } from './spawn.ts'

export interface HelperRequest {
  readonly plan: SandboxPlan
  readonly command: readonly string[]
  readonly input?: Buffer | string | Promise<string>
  readonly timeoutMs: number
  readonly signal?: AbortSignal
  /** Bytes; more ends the helper. 16 MiB when not given. */
  readonly stdoutLimit?: number
  /** For a helper that works in an env root: its lock, so that the tree is never free while anything of the helper lives. */
  readonly lockFd?: number
}

/** How it ended. `timedOut` and `overflow` say that we killed it; a code over 128 is a signal inside, as bubblewrap reports it. */
export type HelperResult = Collected

const STDOUT_LIMIT_BYTES = 16 * 1024 * 1024
const GONE_MS = 2000

async function endInit(init: ProcessId | null, log: Log): Promise<void> {
  if (init === null) return
  await killInit(init, { log, signal: AbortSignal.timeout(GONE_MS) })
  if (!(await waitGone(init, { timeoutMs: GONE_MS }))) log.warn({ init }, 'a helper hangs in the kernel and was left behind')
}

/** Limits pid 1, from which everything inside descends, then lets the command start. Bubblewrap makes its mounts meanwhile, so that this costs no time. */
async function release({ status, block }: Spawned, { limits }: SandboxPlan): Promise<ProcessId | null> {
  const pid = await status.childPid
  const start = pid === null ? null : startTimeOf(pid)
  if (pid === null || start === null) return null
  const init = { pid, start }
  try {
    applyPrlimit(pid, limits)
  } catch (error) {
    // of one that is gone there is nothing to limit
    if (isAlive(init)) throw new AppError('sandbox-unavailable', `a helper's limits cannot be set: ${messageOf(error)}`, { cause: error })
  }
  block.end('x')
  return init
}

/** bubblewrap tells no exit code of a command that it never started: what it said then is its own. That a program is not there is the command's fault, and a result. */
async function assertStarted({ path }: Bwrap, { status }: Spawned, { timedOut, overflow, signal, stderr }: Collected): Promise<void> {
  if (timedOut && (await status.childPid) === null) throw failed(path, 'it made no sandbox in time')
  const ran = timedOut || overflow || signal !== null || status.exitCode() !== null || /^bwrap: execvp /m.test(stderr)
  if (!ran) throw failed(path, stderr)
}

/**
 * Runs one short program in a sandbox of its own, without network or sockets, to its end: no later than `timeoutMs`, nothing of it left. It dies with the host.
 * Throws `sandbox-unavailable` when it cannot be started, the signal's reason when that aborts.
 */
export async function runHelper(deps: { readonly bwrap: Bwrap; readonly log: Log }, request: HelperRequest): Promise<HelperResult> {
  const { plan, command, lockFd = null, timeoutMs, signal, stdoutLimit = STDOUT_LIMIT_BYTES } = request
  signal?.throwIfAborted()
  const spawned = await spawnBwrap(deps.bwrap, { plan, command, lockFd, stdout: 'pipe', stderr: 'pipe' }, signal)
  const released = release(spawned, plan)
  const killChildren = (): void => {
    try {
      for (const pid of childrenOf(spawned.monitor.pid)) signalProcess({ pid, start: startTimeOf(pid) ?? '' }, 'SIGKILL')
    } catch (error) {
      // they die with their monitor, if not at once
      deps.log.warn({ err: error }, 'what a helper has started cannot be told')
    }
  }
  // unlimited, it must not start
  released.catch(() => {
    killChildren()
    killGroup(spawned.child)
  })
  void Promise.resolve(request.input ?? '').then((input) => spawned.stdin.end(input))
  try {
    const collected = await collect(spawned.child, { timeoutMs, stdoutLimitBytes: stdoutLimit, signal, alsoKill: killChildren })
    await released
    await assertStarted(deps.bwrap, spawned, collected)
    return collected
  } finally {
    // pid 1 outlasts the monitor, by milliseconds or for as long as something that the command left behind
    await endInit(await released.catch(() => null), deps.log)
  }
}
