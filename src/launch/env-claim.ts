import type { LaunchDeps } from './ports.ts'
import type { EarlierRun, StartingRow } from './store-ports.ts'
import type { EnvClaim, PreparedProject } from './tree-ports.ts'
import type { Launch } from './under-way.ts'

/** The run to go on with: the one that was named, else the instance's last. */
function earlierRun({ store }: LaunchDeps, run: string | null, { instance, task }: StartingRow): EarlierRun | null {
  const found = run === null ? store.sessions.lastOf(instance, task) : store.sessions.get(run)
  return found === null ? null : { ...found, identity: found.envIdentity }
}

/** Step 2: the env root, claimed before anything else is done to the tree. */
export async function claimEnvRoot({ deps, order, admission, undo }: Launch): Promise<EnvClaim> {
  const { row } = admission
  const { business, env, instance, role, task, run } = row
  const projects = Object.keys(admission.config.business.projects)
  const continueFrom = order.mode === 'continue' ? earlierRun(deps, order.run, row) : null
  const request = { business, env, instance, role, task, run, mode: order.mode, discard: order.discard, continueFrom, projects }
  const claim = await deps.claim(request, { harness: row.harness, signal: deps.stopping })
  undo.defer(() => claim.undo())
  deps.failpoint('launch.claimed')
  deps.store.writeNow(() => {
    deps.store.sessions.setEnv(run, { env: claim.env, envRoot: claim.root.path, envOutcome: claim.outcome, envIdentity: claim.root.identity })
  })
  return claim
}

/** Step 3: current clones in the workspace. */
export async function prepare({ deps, admission }: Launch, claim: EnvClaim, signal: AbortSignal): Promise<readonly PreparedProject[]> {
  deps.failpoint('launch.prepare')
  return deps.prepare(claim.workspace, { config: admission.config, signal })
}
