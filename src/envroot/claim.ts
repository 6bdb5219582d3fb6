import { type EnvClaim, claimRoot } from './claim-root.ts'
import { type ClaimRequest, continueRoot, toTarget } from './continue.ts'
import type { ClaimDeps } from './ports.ts'

export type { EnvClaim } from './claim-root.ts'
export type { ClaimRequest, EarlierRun } from './continue.ts'

/**
 * Takes an env root for a run, before anything else is done to its tree.
 * Throws `env-root-busy`, `env-root-foreign`, `env-root-unowned`, `env-root-unsafe`, `env-root-unsaved`, `env-root-swapped`,
 * `disk-full`; what was there is then as it was, and whoever holds it is not touched.
 */
export async function claimEnvRoot(deps: ClaimDeps, request: ClaimRequest): Promise<EnvClaim> {
  const claim = await (request.mode === 'continue' ? continueRoot(deps, request) : claimRoot(deps, toTarget(request)))
  if (claim === null) throw new Error('an env root that may be made is never missing')
  return claim
}
