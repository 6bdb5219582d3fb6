import type { BusinessConfig } from '../config/types.ts'
import { claimEnvRoot } from '../envroot/claim.ts'
import type { ClaimDeps, Step } from '../envroot/ports.ts'
import { tidyState } from '../envroot/state.ts'
import { findHarness } from '../harness/registry.ts'
import type { Failpoint } from '../launch/failpoints.ts'
import type { LaunchDeps } from '../launch/ports.ts'
import { prepareWorkspace } from '../workspace/prepare.ts'
import type { Project, SyncDeps } from '../workspace/sync.ts'

interface TreeStepsDeps {
  readonly envRoots: ClaimDeps
  readonly workspaces: SyncDeps
  readonly failpoint: Failpoint
  /** Whether a project's root was rewritten, as the last look at it found. */
  readonly diverged: Map<string, boolean>
  /** Repositories are right after a crash before anything touches them; once. */
  readonly recoverGit: () => Promise<void>
}

/** The helpers of a preparation, each one passed by name. */
const withFailpoint = (workspaces: SyncDeps, failpoint: Failpoint): SyncDeps => ({
  ...workspaces,
  runHelper: (request) => {
    failpoint('launch.helper')
    return workspaces.runHelper(request)
  },
})

const projectsOf = ({ projects }: BusinessConfig): Project[] => Object.entries(projects).map(([id, { root, branch }]) => ({ id, root, branch }))

function createClaim({ envRoots, failpoint }: TreeStepsDeps): LaunchDeps['claim'] {
  const hooks = { before: (step: Step): void => failpoint(`claim.${step}`) }
  return async (request, { harness, signal }) => {
    const deps = { ...envRoots, hooks, signal }
    const claim = await claimEnvRoot(deps, request)
    try {
      await tidyState(deps, claim, findHarness(harness)?.stateEntries ?? [])
      return claim
    } catch (error) {
      // whatever failed: a lock that stayed would keep this env root from everybody for as long as the host lives
      await claim.undo().catch((failure: unknown) => envRoots.log.warn({ err: failure, run: request.run }, 'undoing a claim failed'))
      throw error
    }
  }
}

/** Steps 2 and 3: the env root, and what is in its workspace. Both by the configuration of their launch: a reload in between changes nothing. */
export function createTreeSteps(deps: TreeStepsDeps): Pick<LaunchDeps, 'claim' | 'prepare'> {
  const { workspaces, failpoint, diverged, recoverGit } = deps
  return {
    claim: createClaim(deps),
    prepare: async (workspace, { config: { business, system }, signal }) => {
      await recoverGit()
      const input = { business: business.id, projects: projectsOf(business), workspace, deadlineMs: system.limits.prepareTimeoutMs, signal }
      const prepared = await prepareWorkspace(withFailpoint(workspaces, failpoint), input)
      for (const { id, mainDiverged } of prepared) diverged.set(id, mainDiverged)
      return prepared
    },
  }
}
