import { join } from 'node:path'
import { AppError } from '../core/errors.ts'
import type { Failpoint } from '../core/failpoint.ts'
import type { Log } from '../core/log.ts'
import type { Socket } from 'node:net'
import type { Broker } from '../bus/broker.ts'
import { ensureGlobalConfig } from '../git/incoming.ts'
import { recoverGit } from '../git/recovery.ts'
import { moveRef, listRefs, type RefDeps } from '../git/refs.ts'
import { approvedRef, repositoryPath, workRef } from '../git/repository.ts'
import { type GitServerDeps, serveGit } from '../git/server.ts'
import type { SessionPrincipal } from '../protocol/common.ts'
import type { Store } from '../store/open.ts'
import { type SyncDeps, syncProject } from '../workspace/sync.ts'
import type { ConfigState } from './config-state.ts'
import { createRepositories, type Repositories } from './repositories.ts'

const CHECK_TIMEOUT_MS = 300_000
const SYNC_TIMEOUT_MS = 60_000

interface GitServiceDeps {
  readonly log: Log
  readonly failpoint: Failpoint
  readonly config: ConfigState
  readonly store: Store
  readonly broker: Broker
  readonly workspaces: SyncDeps
}

type Authenticate = (cap: string, socket: Socket) => SessionPrincipal | null

export interface GitService extends Repositories {
  /** Serves one connection of git.sock. */
  readonly serve: (authenticate: Authenticate, socket: Socket) => Promise<void>
  readonly repositoryOf: (project: string) => string
  /** Reads working repositories. */
  readonly refs: RefDeps
  /** An approve sets the ref that the founder fetches by. */
  readonly onApproved: (approval: { readonly task: string; readonly project: string; readonly commit: string }) => Promise<void>
  /** After a hard death: stale locks and quarantines go, refs become what the rows say. */
  readonly recover: () => Promise<void>
}

/** What the rows say the refs of a project are. */
function expectedRefs({ store }: GitServiceDeps, project: string): ReadonlyMap<string, string> {
  const work = store.pushes.list().filter((push) => push.latest && push.project === project)
  const approved = store.reviews.approvals().filter((approval) => approval.project === project)
  return new Map([
    ...work.map((push) => [workRef(push.task), push.commit] as const),
    ...approved.map(({ task, commit }) => [approvedRef(task), commit] as const),
  ])
}

/** Whose work a run may fetch: who judges sees all, who pushes its own tasks. */
function fetchable(
  { config, broker, store }: GitServiceDeps,
  principal: SessionPrincipal,
  { project, task }: { project: string; task: string | undefined },
): readonly string[] {
  const judges = broker.permits.has(principal, 'review.verdict')
  if (!judges && !broker.permits.has(principal, 'git.push.working'))
    throw new AppError('not-permitted', 'fetching needs the grant git.push.working or review.verdict')
  if (!Object.hasOwn(config.business().projects, project)) throw new AppError('project-not-found', `no project is called ${JSON.stringify(project)}`)
  const visible = store.tasks.list().filter((row) => row.project === project && (judges || row.assignee === principal.instance))
  if (task === undefined) return visible.map((row) => row.id)
  const found = broker.tasks.find(task)
  if (!visible.some((row) => row.id === found.id)) throw new AppError('not-permitted', `the task ${task} is another instance's`)
  return [task]
}

export async function createGitService(deps: GitServiceDeps): Promise<GitService> {
  const { log, failpoint, config, broker, workspaces } = deps
  const { gitRoot, locks, runHelper } = workspaces
  const business = config.business().id
  const globalConfig = await ensureGlobalConfig(gitRoot)
  const refs = { runHelper, globalConfig }
  const { pushBytes, pushUnpackedBytes, pushObjects } = config.current().system.limits
  const ports: Omit<GitServerDeps['ports'], 'authenticate'> = {
    beginPush: (principal, target) => broker.pushes.check(principal, target),
    finishPush: async (principal, push) => (await broker.pushes.record(principal, push)).id,
    fetchable: (principal, wanted) => Promise.resolve().then(() => fetchable(deps, principal, wanted)),
    syncMain: async (_business, id) => {
      const project = config.business().projects[id]
      if (project !== undefined) await syncProject(workspaces, business, { id, ...project }, { timeoutMs: SYNC_TIMEOUT_MS })
    },
  }
  const limits = { pushBytes, pushUnpackedBytes, pushObjects }
  const server = { runHelper, globalConfig, gitRoot, locks, log, failpoint, checkTimeoutMs: CHECK_TIMEOUT_MS, limits }
  const repositoryOf = (project: string): string => repositoryPath(gitRoot, business, project)
  return {
    serve: (authenticate, socket) => serveGit({ ...server, ports: { ...ports, authenticate } }, socket),
    repositoryOf,
    refs,
    ...createRepositories({ config, workspaces, refs }),
    async onApproved({ task, project, commit }) {
      const repository = repositoryOf(project)
      const ref = approvedRef(task)
      failpoint('review.ref')
      await locks.withLock(repository, { timeoutMs: SYNC_TIMEOUT_MS }, async () => {
        const earlier = (await listRefs(refs, repository, [ref])).get(ref) ?? null
        if (earlier !== commit && !(await moveRef(refs, repository, ref, earlier, commit))) log.error({ ref, commit }, 'approved ref not set')
      })
    },
    recover: () => recoverGit({ ...refs, gitRoot, log, expectedRefs: (_business, project) => expectedRefs(deps, project) }, business),
  }
}

export const gitRootOf = (dataRoot: string): string => join(dataRoot, 'git')
