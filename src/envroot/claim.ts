import type { EnvOutcome } from '../protocol/common.ts'
import { type EnvClaim, claimRoot, previewRoot } from './claim-root.ts'
import { type ClaimRequest, continueRoot, toContinuedTarget, toTarget, whyNotContinued } from './continue.ts'
import { isEnvRefusal } from './decide.ts'
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

/** A continuation takes what it can get: a refused root is no reason against it. */
async function previewContinued(deps: ClaimDeps, request: ClaimRequest): Promise<EnvOutcome> {
  const earlier = request.continueFrom
  const look = (target: ReturnType<typeof toTarget>): Promise<EnvOutcome | null> =>
    previewRoot(deps, target).catch((error: unknown) => {
      if (isEnvRefusal(error)) return 'created' as const
      throw error
    })
  if (earlier !== null && whyNotContinued(request, earlier) === null) {
    const outcome = await look(toContinuedTarget(request, earlier))
    if (outcome !== null) return outcome
  }
  return (await look(toTarget(request))) ?? 'created'
}

/** What `claimEnvRoot` would come to now, with its refusals; nothing is changed. */
export async function previewClaim(deps: ClaimDeps, request: ClaimRequest): Promise<EnvOutcome> {
  if (request.mode === 'continue') return previewContinued(deps, request)
  return (await previewRoot(deps, toTarget(request))) ?? 'created'
}
