import { mkdir, rename, rm, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { syncPath, syncTree } from '../core/durable.ts'
import { AppError } from '../core/errors.ts'
import type { RepositoryLocks } from '../git/lock.ts'
import { mainOf } from '../git/main-store.ts'
import { repositoryPath, sweepRepository, unfinishedRepository } from '../git/repository.ts'
import { type SyncRequest, type SyncResult, syncResultSchema } from '../protocol/prepare.ts'
import { type AskDeps, askHelper } from './ask.ts'
import { lookAtRoot } from './quick-look.ts'
import { resolveCommonDir, rootUnreadable } from './root.ts'
import type { RootGate } from './root-gate.ts'
import { readRootState, type RootLooks } from './root-state.ts'

export interface SyncDeps extends AskDeps {
  readonly gitRoot: string
  readonly locks: RepositoryLocks
  readonly rootLooks: RootLooks
  readonly rootGate: RootGate
}

/** A project as configured: `root` absolute, `branch` the one that agents start from. */
export interface Project {
  readonly id: string
  readonly root: string
  readonly branch: string
}

export interface SyncOptions {
  readonly timeoutMs: number
  readonly signal?: AbortSignal | undefined
  /** Move main although the root's branch was rewritten. */
  readonly force?: boolean
}

const exists = (path: string): Promise<boolean> =>
  stat(path).then(
    () => true,
    () => false,
  )

/**
 * The common case: main is where the root is, and nobody needs the lock to see it. Without a sandbox while nothing that the last look at the root read
 * has changed since.
 */
async function quickLook(deps: SyncDeps, business: string, project: Project, commonDir: string, options: SyncOptions): Promise<string | null> {
  const repository = repositoryPath(deps.gitRoot, business, project.id)
  const main = await mainOf(repository)
  if (main === null) return null
  const { branch } = project
  const state = await deps.rootGate.look(project.root, () => readRootState(commonDir, branch, main), options)
  const look = [repository, commonDir, branch].join('\n')
  if (deps.rootLooks.isKnown(look, main, state)) return main
  const tip = await lookAtRoot(deps, { commonDir, branch, repository }, options)
  if (tip === main) deps.rootLooks.remember(look, main, state)
  return tip
}

type Ask = (repository: string) => Promise<SyncResult>

/** A repository is made beside its place and renamed into it, so a seed that failed leaves none. */
async function seed(repository: string, unfinished: string, ask: Ask): Promise<SyncResult> {
  await rm(unfinished, { recursive: true, force: true })
  await mkdir(unfinished, { mode: 0o700 })
  try {
    const result = await ask(unfinished)
    // git syncs objects and refs, not HEAD, config and its directories: after a power cut there would be a repository that is none
    await syncTree(unfinished)
    await rename(unfinished, repository)
    await syncPath(dirname(repository))
    return result
  } finally {
    await rm(unfinished, { recursive: true, force: true })
  }
}

async function update(repository: string, ask: Ask): Promise<SyncResult> {
  try {
    return await ask(repository)
  } catch (error) {
    await sweepRepository(repository)
    throw error
  }
}

async function underLock(deps: SyncDeps, business: string, project: Project, commonDir: string, options: SyncOptions): Promise<SyncResult> {
  const repository = repositoryPath(deps.gitRoot, business, project.id)
  const end = performance.now() + options.timeoutMs
  const { signal, force = false } = options
  const ask: Ask = (target) => {
    const timeoutMs = end - performance.now()
    const request: SyncRequest = { op: 'sync', commonDir, branch: project.branch, repository: target, force, budgetMs: timeoutMs }
    const binds = [
      { bind: { path: commonDir }, readOnly: true },
      { bind: { path: target }, readOnly: false },
    ]
    return askHelper(deps, request, syncResultSchema, { binds, timeoutMs, signal })
  }
  await mkdir(dirname(repository), { recursive: true, mode: 0o700 })
  return deps.locks.withLock(repository, options, async () =>
    (await exists(repository)) ? update(repository, ask) : seed(repository, unfinishedRepository(deps.gitRoot, business, project.id), ask),
  )
}

/**
 * Brings main of a project's working repository up to its root, making the repository on first use. The root is only read,
 * by a helper that sees nothing else. Throws `checkout-failed`, `prepare-timeout`, `tool-timeout`, `busy`.
 */
export async function syncProject(deps: SyncDeps, business: string, project: Project, options: SyncOptions): Promise<SyncResult> {
  const started = performance.now()
  try {
    const commonDir = await deps.rootGate.look(project.root, () => resolveCommonDir(project.root), options)
    const tip = options.force === true ? null : await quickLook(deps, business, project, commonDir, options)
    if (tip !== null) return { tip, mainDiverged: false }
    return await underLock(deps, business, project, commonDir, { ...options, timeoutMs: options.timeoutMs - (performance.now() - started) })
  } catch (error) {
    if (error instanceof AppError && error.code === 'checkout-failed') throw rootUnreadable(project, error.message)
    throw error
  }
}
