import { signalProcess } from '../core/kernel.ts'
import { bootId, type ProcessId, waitGone } from '../core/proc.ts'

const GONE_MS = 10_000

/**
 * Ends what an earlier host's session left, stopped or not, and waits until it is gone. Only the very processes recorded: by pid, start time and boot.
 * pid 1 first: it takes everything inside with it. Throws when one does not go.
 */
export async function killLeftover(
  recorded: { readonly monitor: ProcessId | null; readonly init: ProcessId | null },
  at: { readonly bootId: string | null },
): Promise<void> {
  if (at.bootId !== bootId()) return
  const left = [recorded.init, recorded.monitor].filter((process) => process !== null)
  for (const process of left) signalProcess(process, 'SIGKILL')
  for (const process of left) {
    if (!(await waitGone(process, { timeoutMs: GONE_MS }))) throw new Error(`process ${String(process.pid)} of an earlier host does not go`)
  }
}
