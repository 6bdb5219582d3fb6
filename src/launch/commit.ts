import type { SessionPrincipal } from '../protocol/common.ts'
import { actorOf, principalOf } from './admit.ts'
import { toManifest, toSession, toTextFiles } from './bundle.ts'
import { resolveCredentials } from './credentials.ts'
import type { OpenedSandbox } from './sandbox-ports.ts'
import type { Launch, Made } from './under-way.ts'

/** What the session finds in its workspace, before it has the capability without which it reads nothing. */
export function writeTexts({ deps }: Launch, { parts, programs, directory, opened, projects }: Made): void {
  deps.failpoint('launch.runner')
  const texts = toTextFiles(parts, projects)
  for (const [name, data] of texts) directory.writeBundle(name, data)
  directory.writeSession(toSession(parts, projects))
  directory.writeBundle('manifest.json', toManifest(parts, new Map([...texts, ...programs]), opened))
}

/**
 * The end of step 7, after all else that may refuse: what it removes of an earlier conversation is gone, whatever becomes of this launch.
 * state/ is bound in the sandbox already, and nobody in there reads it yet.
 */
export async function tidyState({ deps }: Launch, { parts, projects }: Made): Promise<void> {
  deps.failpoint('launch.state')
  deps.stopping.throwIfAborted()
  await deps.tidyState(parts.claim, toSession(parts, projects), deps.stopping)
}

/** Step 8: from this transaction on the run exists, and a failure is its one end. Throws when the launch was cancelled before. */
export function commit({ deps, order, admission }: Launch, { parts, projects, opened, runner }: Made): void {
  const { row, task } = admission
  const { run, instance, role, harness, model, family, launchedBy, manifest } = row
  const { store, broker } = deps
  const { claim } = parts
  const from = principalOf(order.asker, row.business)
  deps.failpoint('launch.commit')
  // the last moment at which a launch can be cancelled: what comes later ends the run instead
  deps.stopping.throwIfAborted()
  store.writeNow(() => {
    store.sessions.setRunner(run, runner)
    store.sessions.setRunning(run)
    const body = { instance, role, harness, model, family, task: row.task, env: claim.outcome, plan: opened.planHash }
    store.trail.append({ kind: 'session.started', subject: run, actor: actorOf(order.asker), body })
    if (order.asker.kind === 'session') {
      store.trail.append({ kind: 'action.allowed', subject: run, actor: actorOf(order.asker), body: { grant: 'role.launch', instance, run, task: row.task } })
    }
    store.launchLog.append({
      event: 'launch',
      run,
      instance,
      fields: { role, launchedBy, harness, model, family, manifest, env: claim.outcome, task: row.task },
    })
    for (const { id, kept } of projects) {
      if (kept !== null) store.launchLog.append({ event: 'checkout-kept', run, instance, fields: { project: id, reason: kept } })
    }
    if (task?.assignee === null) broker.assignTask(task.id, instance, from)
    if (task !== null || order.request !== null) broker.firstRequest(from, instance, { task: row.task, request: order.request })
  })
}

/** Step 9: the capability and the credentials, on the runner's standard input and nowhere else. */
export function giveCapability({ deps, admission }: Launch, { sandbox }: OpenedSandbox, principal: SessionPrincipal): void {
  const role = admission.config.roleOf(admission.row.instance)
  const secrets = resolveCredentials(role.credentials, deps.env)
  deps.failpoint('launch.capability')
  const cap = deps.capabilities.issue(principal)
  // a runner that is gone already is the run's end, not this launch's failure
  sandbox.stdin.on('error', () => undefined)
  sandbox.stdin.end(`${cap}\n${JSON.stringify(secrets)}\n`)
}
