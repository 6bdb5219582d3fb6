import type { BusinessConfig } from '../config/types.ts'
import { claimEnvRoot } from '../envroot/claim.ts'
import { readPlain, writeNew } from '../envroot/files.ts'
import type { PinnedDir } from '../envroot/pin.ts'
import type { ClaimDeps, Step } from '../envroot/ports.ts'
import { tidyState } from '../envroot/state.ts'
import { CONVERSATION_FILE, parseConversation } from '../harness/conversation-file.ts'
import { configFilesOf, findHarness } from '../harness/registry.ts'
import type { Failpoint } from '../launch/failpoints.ts'
import type { LaunchDeps } from '../launch/ports.ts'
import { prepareWorkspace } from '../workspace/prepare.ts'
import type { Project, SyncDeps } from '../workspace/sync.ts'

const CONVERSATION_BYTES = 4096

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

const stateEntriesOf = (harness: string): readonly string[] => findHarness(harness)?.stateEntries ?? []

/** A harness that keeps no conversation has none to lose. The file was an agent's to write. */
function holdsConversation(state: PinnedDir, harness: string): boolean {
  if (!stateEntriesOf(harness).includes(CONVERSATION_FILE)) return true
  const file = readPlain(state, CONVERSATION_FILE, CONVERSATION_BYTES)
  return file.kind === 'read' && parseConversation(file.bytes.toString('utf8'), harness) !== null
}

function createClaim({ envRoots, failpoint }: TreeStepsDeps): LaunchDeps['claim'] {
  const hooks = { before: (step: Step): void => failpoint(`claim.${step}`) }
  return (request, { harness, signal }) =>
    claimEnvRoot({ ...envRoots, hooks, signal }, { ...request, holdsConversation: (state) => holdsConversation(state, harness) })
}

function createTidyState({ envRoots }: TreeStepsDeps): LaunchDeps['tidyState'] {
  return async (claim, session, signal) => {
    await tidyState({ ...envRoots, signal }, claim, stateEntriesOf(session.harness))
    for (const { path, text } of configFilesOf(session, 'state')) writeNew(claim.state, path, text)
  }
}

/** Steps 2 and 3: the env root, and what is in its workspace; then what the harness finds in state/. All by the configuration of their launch: a reload in between changes nothing. */
export function createTreeSteps(deps: TreeStepsDeps): Pick<LaunchDeps, 'claim' | 'prepare' | 'tidyState'> {
  const { workspaces, failpoint, diverged, recoverGit } = deps
  return {
    claim: createClaim(deps),
    tidyState: createTidyState(deps),
    prepare: async (workspace, { config: { business, system }, signal }) => {
      await recoverGit()
      const input = { business: business.id, projects: projectsOf(business), workspace, deadlineMs: system.limits.prepareTimeoutMs, signal }
      const prepared = await prepareWorkspace(withFailpoint(workspaces, failpoint), input)
      for (const { id, mainDiverged } of prepared) diverged.set(id, mainDiverged)
      return prepared
    },
  }
}
