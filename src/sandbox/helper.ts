import type { Log } from '../core/log.ts'
import { signalProcess } from '../core/kernel.ts'
import { childrenOf, type ProcessId, startTimeOf, waitGone } from '../core/proc.ts'
import type { Bwrap } from './bwrap.ts'
import { collect, type Collected } from './collect.ts'
import type { SandboxPlan } from './plan.ts'
import { spawnBwrap } from './spawn.ts'

export interface HelperRequest {
  readonly plan: SandboxPlan
  readonly command: readonly string[]
  readonly input?: Buffer | string
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
  signalProcess(init, 'SIGKILL')
  if (!(await waitGone(init, { timeoutMs: GONE_MS }))) log.warn({ init }, 'a helper hangs in the kernel and was left behind')
}

/**
 * Runs one short program in a sandbox of its own, without network or sockets, to its end: no later than `timeoutMs`, nothing of it left. It dies with the host.
 * Throws `sandbox-unavailable` when it cannot be started, the signal's reason when that aborts.
 */
export async function runHelper(deps: { readonly bwrap: Bwrap; readonly log: Log }, request: HelperRequest): Promise<HelperResult> {
  const { plan, command, lockFd = null, timeoutMs, signal, stdoutLimit = STDOUT_LIMIT_BYTES } = request
  signal?.throwIfAborted()
  const spawned = await spawnBwrap(deps.bwrap, { plan, command, blocked: false, lockFd, stdout: 'pipe', stderr: 'pipe' }, signal)
  let init: ProcessId | null = null
  const known = spawned.status.childPid.then((pid) => {
    const start = pid === null ? null : startTimeOf(pid)
    if (pid !== null && start !== null) init = { pid, start }
  })
  const killChildren = (): void => {
    for (const pid of childrenOf(spawned.monitor.pid)) signalProcess({ pid, start: startTimeOf(pid) ?? '' }, 'SIGKILL')
  }
  spawned.stdin.end(request.input ?? '')
  try {
    return await collect(spawned.child, { timeoutMs, stdoutLimitBytes: stdoutLimit, signal, alsoKill: killChildren })
  } finally {
    await known
    // pid 1 outlasts the monitor, by milliseconds or for as long as something that the command left behind
    await endInit(init, deps.log)
  }
}
