import { type EndReason, RUNNER_EXIT } from '../protocol/end-reasons.ts'

/** What the host itself did to end a run, if anything. */
export interface EndIntent {
  readonly reason: 'stopped' | 'killed' | 'turn-timeout' | 'idle-timeout' | 'run-timeout' | 'disk-limit' | 'failed'
  /** The host had to SIGKILL the sandbox. */
  readonly forced: boolean
}

/** How the sandbox ended, as the kernel and bwrap's status channel tell it. */
export interface SandboxExit {
  readonly exitCode: number | null
  readonly signal: string | null
  readonly outOfMemory: boolean
  /** The status channel closed without an exit code. */
  readonly statusLost: boolean
}

export interface RunEnd {
  readonly reason: EndReason
  readonly exitCode: number | null
  readonly signal: string | null
}

const BY_EXIT_CODE = new Map<number, EndReason>(Object.entries(RUNNER_EXIT).map(([reason, code]) => [code, reason as EndReason]))

/** The one end of a run from what the host did and what it saw; the host's own act wins over what the sandbox then looked like. */
export function classifyEnd(intent: EndIntent | null, exit: SandboxExit): RunEnd {
  if (intent?.forced) return { reason: intent.reason, exitCode: null, signal: 'SIGKILL' }
  if (exit.outOfMemory) return { reason: 'out-of-memory', exitCode: null, signal: 'SIGKILL' }
  if (intent !== null) return { reason: intent.reason, exitCode: exit.exitCode, signal: exit.signal }
  if (exit.statusLost) return { reason: 'sandbox-failed', exitCode: null, signal: null }
  if (exit.signal !== null) return { reason: 'killed', exitCode: null, signal: exit.signal }
  return { reason: BY_EXIT_CODE.get(exit.exitCode ?? -1) ?? 'failed', exitCode: exit.exitCode, signal: null }
}
