import { setTimeout as sleep } from 'node:timers/promises'
import { AppError } from '../core/errors.ts'
import { childrenOf, isAlive, type ProcessId, startTimeOf, statusOf } from '../core/proc.ts'
import { isZero } from './readback.ts'

const DEADLINE_MS = 10_000
const LOOK_MS = 1

export const tooLate = (what: string, timeoutMs: number): AppError =>
  new AppError('spawn-failed', `the sandbox did not ${what} within ${String(timeoutMs / 1000)} s`)

/** Looks each millisecond until `look` has found something; the answer, or null once the sandbox is gone. */
export async function until<T>(init: ProcessId, what: string, signal: AbortSignal | undefined, look: () => T | null): Promise<T | null> {
  const end = performance.now() + DEADLINE_MS
  for (;;) {
    const found = look()
    if (found !== null) return found
    if (!isAlive(init)) return null
    signal?.throwIfAborted()
    if (performance.now() > end) throw tooLate(what, DEADLINE_MS)
    await sleep(LOOK_MS)
  }
}

/** child-pid comes before the mounts are made; empty capability sets are the last thing bubblewrap does before it waits at the block. */
export function hasDropped(pid: number): true | null {
  const status = statusOf(pid)
  return isZero(status.CapPrm) && isZero(status.CapEff) && isZero(status.CapBnd) ? true : null
}

const SECCOMP_FILTER = '2'

/** The command is pid 2 inside, the first child of pid 1; it takes the filter as its last act before exec, which gives it another name than bubblewrap's. */
export function filteredRunner(init: ProcessId): ProcessId | null {
  const first = statusOf(init.pid)
  const pid = childrenOf(init.pid)[0]
  if (pid === undefined || first.Seccomp !== SECCOMP_FILTER) return null
  const second = statusOf(pid)
  const start = startTimeOf(pid)
  const isCommand = second.NSpid?.split(/\s+/).at(-1) === '2' && second.Name !== first.Name
  return isCommand && second.Seccomp === SECCOMP_FILTER && start !== null ? { pid, start } : null
}
