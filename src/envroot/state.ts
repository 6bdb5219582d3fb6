import type { EnvClaim } from './claim-root.ts'
import { holdsOther, unlinkIfThere } from './files.ts'
import type { PinnedDir } from './pin.ts'
import type { ClaimDeps } from './ports.ts'

function unlinkFile(dir: Pick<PinnedDir, 'fd'>, name: string): void {
  try {
    unlinkIfThere(dir, name)
  } catch {
    // a directory, or in one that may not be written to: the removal sees to both
  }
}

/**
 * Leaves in state/ only what carries the conversation that this launch goes on with: the entries that the harness names, or
 * nothing when the conversation is not resumed. What an agent wrote beside them must not reach the next run. It cannot be undone, so it comes last
 * of all that may refuse a launch; cut off, it leaves no file that says there is a conversation.
 */
export async function tidyState(
  deps: Pick<ClaimDeps, 'emptyTree' | 'signal'>,
  claim: Pick<EnvClaim, 'conversation'> & { readonly state: Pick<PinnedDir, 'fd' | 'path'> },
  entries: readonly string[],
): Promise<void> {
  const keep = claim.conversation ? entries : []
  // a helper sandbox costs more than the rest of a claim, and most often there is nothing to remove
  if (!holdsOther(claim.state, keep)) return
  if (!claim.conversation) for (const name of entries) unlinkFile(claim.state, name)
  await deps.emptyTree(claim.state, keep, deps.signal)
}
