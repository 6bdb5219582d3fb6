import type { EnvClaim } from './claim-root.ts'
import { holdsOther } from './files.ts'
import type { ClaimDeps } from './ports.ts'

/**
 * Leaves in state/ only what carries the conversation that this launch goes on with: the entries that the harness names, or
 * nothing when the conversation is not resumed. What an agent wrote beside them must not reach the next run.
 */
export async function tidyState(
  deps: Pick<ClaimDeps, 'emptyTree' | 'signal'>,
  claim: Pick<EnvClaim, 'state' | 'conversation'>,
  entries: readonly string[],
): Promise<void> {
  const keep = claim.conversation ? entries : []
  // a helper sandbox costs more than the rest of a claim, and most often there is nothing to remove
  if (!holdsOther(claim.state, keep)) return
  await deps.emptyTree(claim.state, keep, deps.signal)
}
