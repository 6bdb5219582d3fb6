import { AppError, codeOf, messageOf } from '../core/errors.ts'
import { createScope, type Scope } from '../core/scope.ts'
import type { Grant, SessionPrincipal } from '../protocol/common.ts'
import type { SessionFile } from '../protocol/session.ts'
import type { LaunchRow } from '../protocol/rows.ts'
import { actorOf, admit, type Admission, type LaunchOrder, principalOf, refuse } from './admit.ts'
import { type BundleFiles, type BundleParts, type SocketRights, toManifest, toProgramFiles, toSession, toTextFiles } from './bundle.ts'
import { cacheEnvironment } from './cache-environment.ts'
import { resolveCredentials } from './credentials.ts'
import { toGitVariables } from './git-access.ts'
import type { EarlierRun, EnvClaim, LaunchDeps, ModelSocket, OpenedSandbox, PreparedProject, RunDirectory, StartedRun, StartingRow } from './ports.ts'

interface Spawned {
  readonly parts: BundleParts
  readonly programs: BundleFiles
  readonly directory: RunDirectory
  readonly opened: OpenedSandbox
}

interface Made extends Spawned {
  readonly projects: readonly PreparedProject[]
}

/** Everything that a failing launch leaves to be undone is registered in `undo` by the step that did it. */
interface Launch {
  readonly deps: LaunchDeps
  readonly order: LaunchOrder
  readonly admission: Admission
  readonly undo: Scope
}

/** The sockets in the sandbox: `launch.sock` for launch.by's role that holds role.launch, `git.sock` for who pushes or judges. */
function rightsOf(admission: Admission, grants: readonly Grant[], needsModel: boolean): SocketRights {
  const { row, config } = admission
  return {
    launch: row.role === config.business.launch.by && grants.includes('role.launch'),
    git: grants.includes('git.push.working') || grants.includes('review.verdict'),
    model: needsModel,
  }
}

/** The run to go on with: the one that was named, else the instance's last. */
function earlierRun({ store }: LaunchDeps, run: string | null, { instance, task }: StartingRow): EarlierRun | null {
  const found = run === null ? store.sessions.lastOf(instance, task) : store.sessions.get(run)
  return found === null ? null : { ...found, identity: found.envIdentity }
}

/** Step 2: the env root, claimed before anything else is done to the tree. */
async function claimEnvRoot({ deps, order, admission, undo }: Launch): Promise<EnvClaim> {
  const { row } = admission
  const { business, env, instance, role, task, run } = row
  const projects = Object.keys(admission.config.business.projects)
  const continueFrom = order.mode === 'continue' ? earlierRun(deps, order.run, row) : null
  const claim = await deps.claim({ business, env, instance, role, task, run, mode: order.mode, discard: order.discard, continueFrom, projects })
  undo.defer(() => claim.undo())
  deps.failpoint('launch.claimed')
  deps.store.writeNow(() => {
    deps.store.sessions.setEnv(run, { env: claim.env, envRoot: claim.root.path, envOutcome: claim.outcome, envIdentity: claim.root.identity })
  })
  return claim
}

/** Step 3: current clones in the workspace. */
async function prepare({ deps }: Launch, claim: EnvClaim): Promise<readonly PreparedProject[]> {
  deps.failpoint('launch.prepare')
  return deps.prepare(claim.workspace, deps.stopping)
}

/** Step 4: what the bundle is made of. */
async function toParts({ deps, admission }: Launch, claim: EnvClaim): Promise<BundleParts> {
  const { row, config } = admission
  const role = config.roleOf(row.instance)
  const { needsModelSocket, programs, versions } = deps.harnessOf(row.harness)
  return {
    admission,
    claim,
    grants: role.grants,
    tools: role.limits.tools,
    sockets: rightsOf(admission, role.grants, needsModelSocket),
    versions,
    harnessPrograms: programs,
    rolePrompt: await deps.rolePrompt(role),
    runnerProgram: deps.runnerProgram,
    limits: { ...role.limits },
    lost: claim.continuityLost === null ? [] : [claim.continuityLost],
  }
}

/** Step 4: the run directory with the programs of its bundle; what tells of the workspace follows when that is prepared. */
function writeRunDirectory({ deps, admission, undo }: Launch, session: SessionFile, files: BundleFiles): RunDirectory {
  deps.failpoint('launch.directory')
  const directory = deps.openRunDirectory(admission.row.run, files, session)
  undo.defer(() => directory.remove())
  return directory
}

/** Step 5: the run's own socket to its model; null for a harness that asks none. */
async function openModel({ deps, admission, undo }: Launch, { sockets }: BundleParts): Promise<ModelSocket | null> {
  if (!sockets.model) return null
  const { row } = admission
  undo.defer(() => deps.closeModel(row.run))
  return await deps.openModel(row)
}

/** Step 5: bwrap, spawned and blocked. */
async function spawnSandbox(launch: Launch, parts: BundleParts, session: SessionFile, directory: RunDirectory): Promise<OpenedSandbox> {
  const { deps, admission, undo } = launch
  const { row, config } = admission
  const { bus, launch: launchSocket, git } = deps.sockets
  const model = await openModel(launch, parts)
  const sockets = [
    { name: 'bus.sock', path: bus },
    ...(parts.sockets.launch ? [{ name: 'launch.sock', path: launchSocket }] : []),
    ...(parts.sockets.git ? [{ name: 'git.sock', path: git }] : []),
    ...(model === null ? [] : [{ name: 'model.sock', path: model.path }]),
  ]
  const role = config.roleOf(row.instance)
  deps.failpoint('launch.spawn')
  const opened = await deps.openSandbox({
    run: row.run,
    role,
    session,
    claim: parts.claim,
    directory,
    sockets,
    placeholder: model?.placeholder ?? null,
    env: { ...cacheEnvironment(parts.claim.cache.path), ...role.env, ...toGitVariables(config.business.projects, role.env) },
  })
  undo.defer(() => opened.sandbox.kill())
  return opened
}

/** Steps 4 to 6: a sandbox, blocked, read back and compared with its plan; its processes in the row. */
async function makeSandbox(launch: Launch, claim: EnvClaim, signal: AbortSignal): Promise<Spawned> {
  const { deps, admission } = launch
  const { run } = admission.row
  const parts = await toParts(launch, claim)
  const programs = toProgramFiles(parts)
  const session = toSession(parts, [])
  const directory = writeRunDirectory(launch, session, programs)
  const opened = await spawnSandbox(launch, parts, session, directory)
  const { sandbox, planHash } = opened
  deps.failpoint('launch.settle')
  await sandbox.settle(signal)
  deps.failpoint('launch.settled')
  deps.store.writeNow(() => {
    deps.store.sessions.setPlan(run, planHash)
    deps.store.sessions.setSpawned(run, { monitor: sandbox.monitor, init: sandbox.init, bootId: deps.bootId })
  })
  return { parts, programs, directory, opened }
}

/**
 * Steps 3 to 6. The sandbox is made while the workspace is prepared: nothing runs in it before both are there. A workspace that cannot be
 * prepared ends it; of two failures the workspace's is told.
 */
async function prepareAndSpawn(launch: Launch, claim: EnvClaim): Promise<Made> {
  const failed = new AbortController()
  const signal = AbortSignal.any([launch.deps.stopping, failed.signal])
  const preparing = prepare(launch, claim).catch((error: unknown) => {
    failed.abort(error)
    throw error
  })
  const [projects, spawned] = await Promise.allSettled([preparing, makeSandbox(launch, claim, signal)])
  if (projects.status === 'rejected') throw projects.reason
  if (spawned.status === 'rejected') throw spawned.reason
  claim.assertSame()
  return { ...spawned.value, projects: projects.value }
}

/** Step 7: the session's texts written, its command unblocked and under seccomp. */
async function release({ deps, admission }: Launch, { parts, programs, directory, opened, projects }: Made): Promise<void> {
  const texts = toTextFiles(parts, projects)
  for (const [name, data] of texts) directory.writeBundle(name, data)
  directory.writeSession(toSession(parts, projects))
  directory.writeBundle('manifest.json', toManifest(parts, new Map([...texts, ...programs]), opened))
  deps.failpoint('launch.unblock')
  const runner = await opened.sandbox.unblock()
  deps.failpoint('launch.runner')
  deps.store.writeNow(() => {
    deps.store.sessions.setRunner(admission.row.run, runner)
  })
}

/** Step 8: from this transaction on the run exists, and a failure is its one end. */
function commit({ deps, order, admission }: Launch, { parts, projects, opened }: Made): void {
  const { row, task } = admission
  const { run, instance, role, harness, model, family, launchedBy, manifest } = row
  const { store, broker } = deps
  const { claim } = parts
  const from = principalOf(order.asker, row.business)
  deps.failpoint('launch.commit')
  store.writeNow(() => {
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
function giveCapability({ deps, admission }: Launch, { sandbox }: OpenedSandbox, principal: SessionPrincipal): void {
  const role = admission.config.roleOf(admission.row.instance)
  const secrets = resolveCredentials(role.credentials, deps.env)
  deps.failpoint('launch.capability')
  const cap = deps.capabilities.issue(principal)
  // a runner that is gone already is the run's end, not this launch's failure
  sandbox.stdin.on('error', () => undefined)
  sandbox.stdin.end(`${cap}\n${JSON.stringify(secrets)}\n`)
}

/** Steps 2 to 7. */
async function build(launch: Launch): Promise<Made> {
  launch.deps.failpoint('launch.claim')
  const made = await prepareAndSpawn(launch, await claimEnvRoot(launch))
  await release(launch, made)
  return made
}

function toStarted({ admission }: Launch, { parts, directory, opened }: Made, startedMs: number): StartedRun {
  const { run, instance, role, task, launchedBy, launchedByKind } = admission.row
  const { limits } = admission.config.roleOf(instance)
  return { run, instance, role, task, launchedBy, launchedByKind, startedMs, claim: parts.claim, directory, sandbox: opened.sandbox, limits }
}

/** A launch that was cancelled is refused with the reason for it; without one, the host is stopping. */
const whyStopped = ({ reason }: AbortSignal, cause: unknown): AppError =>
  reason instanceof AppError ? reason : new AppError('host-stopping', 'the bus host is stopping', { cause })

/** Undoes what was done, last first, and leaves only the refusal. */
async function giveUp({ deps, order, admission, undo }: Launch, cause: unknown): Promise<AppError> {
  deps.failpoint('launch.undo')
  await undo.close().catch((error: unknown) => {
    deps.log.error({ err: error, run: admission.row.run }, 'undoing a launch failed')
  })
  const refusal = deps.stopping.aborted ? whyStopped(deps.stopping, cause) : cause
  const code = codeOf(refusal)
  if (code === 'internal') deps.log.error({ err: cause, run: admission.row.run }, 'launch failed')
  const hint = refusal instanceof AppError ? refusal.hint : undefined
  const why = code === 'internal' ? `the bus host failed: ${messageOf(cause)}` : messageOf(refusal)
  deps.failpoint('launch.refuse')
  return refuse(deps, order, { code, why, ...(hint === undefined ? {} : { hint }) }, admission.row)
}

/**
 * A launch in its ten steps. Before the commit a failure undoes everything, in reverse, and is a refusal with the gate's or
 * the step's code, written to the launch log; from the commit on the reply is ok and a failure is the run's one end.
 */
export async function launchSession(deps: LaunchDeps, order: LaunchOrder): Promise<LaunchRow> {
  deps.failpoint('launch.admit')
  const admission = await admit(deps, order)
  const launch: Launch = { deps, order, admission, undo: createScope() }
  const startedMs = deps.clock.monotonic()
  const made = await build(launch)
    .then((built) => {
      commit(launch, built)
      return built
    })
    .catch(async (error: unknown) => {
      throw await giveUp(launch, error)
    })
  deps.failpoint('launch.adopt')
  deps.adopt(toStarted(launch, made, startedMs))
  const { run, instance, role, harness, model, business } = admission.row
  giveCapability(launch, made.opened, { kind: 'session', business, role, instance, run, grants: new Set(admission.config.roleOf(instance).grants) })
  deps.failpoint('launch.reply')
  return { run, instance, harness, model, env: made.parts.claim.outcome }
}
