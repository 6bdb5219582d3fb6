import type { Grant } from '../protocol/common.ts'
import type { SessionFile } from '../protocol/session.ts'
import type { Admission } from './admit.ts'
import { type BundleFiles, type BundleParts, type SocketRights, toProgramFiles, toSession } from './bundle.ts'
import { cacheEnvironment } from './cache-environment.ts'
import { toGitVariables } from './git-access.ts'
import type { ModelSocket, OpenedSandbox } from './sandbox-ports.ts'
import type { EnvClaim, RunDirectory } from './tree-ports.ts'
import type { Launch, Spawned, Waiting } from './under-way.ts'

/** The sockets in the sandbox: `launch.sock` for launch.by's role that holds role.launch, `git.sock` for who pushes or judges. */
function rightsOf(admission: Admission, grants: readonly Grant[], needsModel: boolean): SocketRights {
  const { row, config } = admission
  return {
    launch: row.role === config.business.launch.by && grants.includes('role.launch'),
    git: grants.includes('git.push.working') || grants.includes('review.verdict'),
    model: needsModel,
  }
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
  const { row, config } = admission
  undo.defer(() => deps.closeModel(row.run))
  return await deps.openModel(row, config)
}

/** What a sandbox is bound to: its run's directory, and the signal that ends its start. */
interface Bound {
  readonly session: SessionFile
  readonly directory: RunDirectory
  readonly signal: AbortSignal
}

/** Step 5: bwrap, spawned and blocked. */
async function spawnSandbox(launch: Launch, parts: BundleParts, bound: Bound): Promise<OpenedSandbox> {
  const { session, directory, signal } = bound
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
    signal,
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
  const opened = await spawnSandbox(launch, parts, { session, directory, signal })
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

/** Steps 4 to 7: the runner, under seccomp in a sandbox that is what was planned. It does nothing but wait for its capability. */
export async function startRunner(launch: Launch, claim: EnvClaim, signal: AbortSignal): Promise<Waiting> {
  const spawned = await makeSandbox(launch, claim, signal)
  claim.assertSame()
  launch.deps.failpoint('launch.unblock')
  return { ...spawned, runner: await spawned.opened.sandbox.unblock(signal) }
}
