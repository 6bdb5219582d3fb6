import { join } from 'node:path'
import { AppError } from '../core/errors.ts'
import type { Failpoint } from '../core/failpoint.ts'
import type { Log } from '../core/log.ts'
import { createPending } from '../core/pending.ts'
import type { Socket } from 'node:net'
import type { Broker } from '../bus/broker.ts'
import type { OnApproved } from '../bus/reviews.ts'
import { createFetchPlaces } from '../git/fetch-places.ts'
import { ensureGlobalConfig } from '../git/incoming.ts'
import { recoverGit } from '../git/recovery.ts'
import { moveRef, listRefs, type RefDeps } from '../git/refs.ts'
import { approvedRef, repositoryPath, workRef } from '../git/repository.ts'
import type { GitServerDeps } from '../git/exchange.ts'
import { serveGit } from '../git/server.ts'
import type { SessionPrincipal } from '../protocol/common.ts'
import type { Store } from '../store/open.ts'
import { type SyncDeps, syncProject } from '../workspace/sync.ts'
import { createApprovedRefs } from './approved-refs.ts'
import type { ConfigState } from './config-state.ts'
import { freeBytesOf } from './disk-watch.ts'
import { createRepacking } from './repacking.ts'
import { createReadyInspectors } from '../git/ready.ts'
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
  readonly diverged: Map<string, boolean>
  /** Aborts when what works by itself, or for the founder, is to end. */
  readonly stopping: AbortSignal
}

type Authenticate = (cap: string, socket: Socket) => SessionPrincipal | null

export interface GitService extends Repositories {
  /** Serves one connection of git.sock. */
  readonly serve: (authenticate: Authenticate, socket: Socket) => Promise<void>
  readonly repositoryOf: (project: string) => string
  /** Reads working repositories. */
  readonly refs: RefDeps
  /** An approve sets the ref that the founder fetches by, in the end. */
  readonly onApproved: OnApproved
  /** After a hard death: stale locks and quarantines go, refs become what the rows say. Once; throws `sandbox-unavailable` where git cannot run, `busy` while a backup is at work. */
  readonly recover: () => Promise<void>
  /** Repositories that could not be put right. */
  readonly warnings: () => readonly string[]
  /** Packs anew what has many packs. */
  readonly repack: () => Promise<void>
  /** Resolves when no request is served, nothing is at work by itself (repacking and approved refs, which end when the host stops), and no sandbox stands ready. */
  readonly settled: () => Promise<void>
}

/** What the rows say the refs of a project are. */
function expectedRefs({ store }: GitServiceDeps, project: string): ReadonlyMap<string, string> {
  const work = [...store.pushes.list()].filter((push) => push.latest && push.project === project)
  const approved = store.reviews.approvals().filter((approval) => approval.project === project)
  return new Map([
    ...work.map((push) => [workRef(push.task), push.commit] as const),
    ...approved.map(({ task, commit }) => [approvedRef(task), commit] as const),
  ])
}

/** Whose work a run may fetch: who judges sees all, who pushes its own tasks. A task without a push yet has nothing beside main. */
async function fetchable(
  { config, broker, store }: GitServiceDeps,
  principal: SessionPrincipal,
  { project, task }: { project: string; task: string | undefined },
): Promise<readonly string[]> {
  const { permits, tasks } = broker
  const about = { action: 'fetch', subject: task ?? null, body: { project } }
  const judges = permits.has(principal, 'review.verdict')
  if (!judges) await permits.demand(principal, 'git.push.working', about)
  if (!Object.hasOwn(config.business().projects, project)) throw new AppError('project-not-found', `no project is called ${JSON.stringify(project)}`)
  if (task === undefined) return store.tasks.idsIn(project, judges ? null : principal.instance)
  const found = tasks.find(task)
  if (!judges && found.assignee !== principal.instance) return permits.deny(principal, 'git.push.working', about, `the task ${task} is another instance's`)
  if (found.project !== null && found.project !== project) throw new AppError('wrong-project', `the task ${task} belongs to the project ${found.project}`)
  return found.project === null ? [] : [task]
}

/** Runs once, before whatever needs it; what failed is tried again by the next. */
function once(work: () => Promise<void>): () => Promise<void> {
  let done: Promise<void> | undefined
  return () =>
    (done ??= work().catch((error: unknown) => {
      done = undefined
      throw error
    }))
}

function createRecovery(deps: GitServiceDeps, refs: RefDeps): Pick<GitService, 'recover' | 'warnings'> {
  const { log, config, workspaces } = deps
  let warnings: string[] = []
  const recover = once(() => {
    warnings = []
    const warn = (line: string): void => void warnings.push(line)
    const expected = (_business: string, project: string): ReadonlyMap<string, string> => expectedRefs(deps, project)
    const { gitRoot, locks } = workspaces
    return recoverGit({ ...refs, gitRoot, locks, log, warn, expectedRefs: expected, signal: deps.stopping }, config.business().id)
  })
  return { recover, warnings: () => warnings }
}

/** Puts a task's approved ref where the rows say, under its repository's lock. */
function createSetRef(deps: GitServiceDeps, refs: RefDeps, repositoryOf: GitService['repositoryOf']) {
  return ({ task, project }: { readonly task: string; readonly project: string }): Promise<void> => {
    const [repository, ref] = [repositoryOf(project), approvedRef(task)]
    deps.failpoint('review.ref')
    return deps.workspaces.locks.withLock(repository, { timeoutMs: SYNC_TIMEOUT_MS, signal: deps.stopping }, async () => {
      // a later approval may have come while this one waited
      const commit = expectedRefs(deps, project).get(ref) ?? null
      const earlier = (await listRefs(refs, repository, [ref])).get(ref) ?? null
      if (earlier !== commit && !(await moveRef(refs, repository, ref, earlier, commit))) throw new Error(`${ref} cannot be moved`)
    })
  }
}

export async function createGitService(deps: GitServiceDeps): Promise<GitService> {
  const { log, failpoint, config, broker, workspaces } = deps
  const { gitRoot, locks, runHelper } = workspaces
  const business = config.business().id
  const globalConfig = await ensureGlobalConfig(gitRoot)
  const refs = { runHelper, globalConfig }
  const { recover, warnings } = createRecovery(deps, refs)
  const ports: Omit<GitServerDeps['ports'], 'authenticate'> = {
    beginPush: async (principal, target) => {
      broker.budget.assertRoom(principal)
      await recover()
      return broker.pushes.check(principal, target)
    },
    finishPush: async (principal, push) => (await broker.pushes.record(principal, push)).id,
    async fetchable(principal, wanted) {
      await recover()
      return fetchable(deps, principal, wanted)
    },
    pushed: (_business, project) => void repacking.start(repositoryOf(project)),
    syncMain: async (_business, id, signal) => {
      const project = config.business().projects[id]
      if (project !== undefined) await syncProject(workspaces, business, { id, ...project }, { timeoutMs: SYNC_TIMEOUT_MS, signal })
    },
  }
  const repositoryOf = (project: string): string => repositoryPath(gitRoot, business, project)
  const repacking = createRepacking({ ...refs, locks, log }, deps.stopping)
  const approvedRefs = createApprovedRefs({ log, stopping: deps.stopping, setRef: createSetRef(deps, refs, repositoryOf) })
  const freeBytes = (): Promise<number> => freeBytesOf(gitRoot)
  const inspecting = { runHelper, globalConfig, gitRoot, log, checkTimeoutMs: CHECK_TIMEOUT_MS, limits: () => config.current().system.limits }
  const ready = createReadyInspectors(inspecting)
  const server = { ...inspecting, locks, failpoint, freeBytes, ready, fetches: createFetchPlaces() }
  const serving = createPending()
  return {
    serve: (authenticate, socket) => serving.add(serveGit({ ...server, ports: { ...ports, authenticate } }, socket)),
    repositoryOf,
    refs,
    ...createRepositories({ config, workspaces, refs, diverged: deps.diverged, stopping: deps.stopping }),
    onApproved: approvedRefs.approved,
    recover,
    warnings,
    async repack() {
      for (const project of Object.keys(config.business().projects)) await repacking.start(repositoryOf(project))
    },
    async settled() {
      await serving.settled()
      await Promise.all([ready[Symbol.asyncDispose](), repacking.settled(), approvedRefs.settled()])
    },
  }
}

export const gitRootOf = (dataRoot: string): string => join(dataRoot, 'git')
