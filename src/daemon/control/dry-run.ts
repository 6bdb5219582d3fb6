import { AppError } from '../../core/errors.ts'
import { createRunId } from '../../core/ids.ts'
import type { ClaimRequest, EarlierRun } from '../../envroot/claim.ts'
import { previewClaim } from '../../envroot/claim.ts'
import { dryRun, type LaunchOrder } from '../../launch/admit.ts'
import type { FounderLaunchRow } from '../../protocol/rows.ts'
import type { Host } from '../host.ts'

function earlierRun({ store }: Host, { mode, run, instance, task }: LaunchOrder): EarlierRun | null {
  if (mode !== 'continue') return null
  const found = run === null ? store.sessions.lastOf(instance, task) : store.sessions.get(run)
  return found === null ? null : { ...found, identity: found.envIdentity }
}

function toClaimRequest(host: Host, order: LaunchOrder, role: string): ClaimRequest {
  const { instance, task, mode, discard } = order
  const { id: business, projects } = host.deps.config.business()
  return {
    business,
    env: task === null ? instance : `${instance}--${task}`,
    instance,
    role,
    task,
    run: createRunId(), // nobody's: a live run in the root is another
    mode,
    discard,
    continueFrom: earlierRun(host, order),
    projects: Object.keys(projects),
  }
}

/** What a launch would come to as far as gate and env root can tell, with their refusals; nothing is written. */
export async function dryRunLaunch(host: Host, order: LaunchOrder): Promise<FounderLaunchRow> {
  const verdict = await dryRun(host.launching, order)
  if (!verdict.ok) throw new AppError(verdict.code, verdict.why)
  const { harness, model, role } = verdict.target
  const env = await previewClaim(host.envRoots, toClaimRequest(host, order, role))
  return { run: null, instance: order.instance, harness, model, env }
}
