import { mkdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { codeOf, messageOf } from '../core/errors.ts'
import type { Log } from '../core/log.ts'
import { isLockLive, lockPathOf, type RepositoryLocks } from './lock.ts'
import { knownCommits, listRefs, moveRef, type RefDeps, runGit } from './refs.ts'
import { entriesOf, incomingRoot, mainStoresRoot, repositoryPath, sweepRepository } from './repository.ts'

export interface RecoveryDeps extends RefDeps {
  readonly gitRoot: string
  readonly log: Log
  readonly locks: RepositoryLocks
  /** What the rows say a repository's work and approved refs are: full ref names and commits. */
  readonly expectedRefs: (business: string, project: string) => ReadonlyMap<string, string>
  readonly signal?: AbortSignal
  /** Told to whoever starts the host. */
  readonly warn: (line: string) => void
}

const OURS = ['refs/heads/work/', 'refs/mosaic/']

/** Work refs of other than the recorded tips are pushes that were never acknowledged, or rows that outlived their ref: the rows decide. */
async function repairRefs(deps: RecoveryDeps, repository: string, expected: ReadonlyMap<string, string>): Promise<void> {
  const found = await listRefs(deps, repository, OURS)
  const wrong = [...new Set([...found.keys(), ...expected.keys()])].filter((ref) => found.get(ref) !== expected.get(ref))
  if (wrong.length === 0) return
  const wanted = wrong.flatMap((ref) => expected.get(ref) ?? [])
  const known = wanted.length === 0 ? new Set<string>() : await knownCommits(deps, repository, wanted)
  for (const ref of wrong) {
    const [from, to] = [found.get(ref) ?? null, expected.get(ref) ?? null]
    if (to !== null && !known.has(to)) deps.log.error({ repository, ref, commit: to }, 'the commit of a push row is missing')
    else if (await moveRef(deps, repository, ref, from, to)) deps.log.warn({ repository, ref, from, to }, 'ref repaired')
    else deps.log.error({ repository, ref, from, to }, 'ref not repaired')
  }
}

/** A backup may be at work while we start: it is waited for this long, and then whoever needs the repositories first waits again. */
const LOCK_TIMEOUT_MS = 10_000

/** What a crash left beside the repositories: locks that nobody holds, and half of a repository that nobody is making. */
async function sweepBusiness(directory: string, entries: readonly string[]): Promise<void> {
  for (const name of entries.filter((entry) => entry.endsWith('.lock') && !isLockLive(join(directory, entry)))) {
    await rm(join(directory, name), { recursive: true, force: true })
  }
  for (const name of entries.filter((entry) => entry.startsWith('.new-') && entry.endsWith('.git'))) {
    const made = join(directory, name.slice('.new-'.length))
    if (!isLockLive(lockPathOf(made))) await rm(join(directory, name), { recursive: true, force: true })
  }
}

async function sweep({ log }: RecoveryDeps, repository: string): Promise<void> {
  const swept = await sweepRepository(repository)
  if (swept.length > 0) log.warn({ repository, swept }, 'stale git files removed')
}

/** Does git itself say that this is no repository, or one that it cannot read? 128: a fatal error. git(1) */
async function isBroken(deps: RecoveryDeps, repository: string): Promise<boolean> {
  const { exitCode } = await runGit(deps, repository, ['rev-parse', '--git-dir'], { readOnly: true })
  return exitCode === 128
}

/** A power cut may leave files without their content. What the root alone went into is made anew from it; what somebody pushed is not ours to move. */
async function putAside(deps: RecoveryDeps, business: string, project: string, cause: unknown): Promise<void> {
  const { gitRoot, log, warn } = deps
  const repository = repositoryPath(gitRoot, business, project)
  log.error({ err: cause, repository }, 'repository not recovered')
  if (deps.expectedRefs(business, project).size > 0 || !(await isBroken(deps, repository))) {
    warn(`the repository of ${project} (${repository}) cannot be put right: ${messageOf(cause)}`)
    return
  }
  const aside = join(gitRoot, business, `.broken-${project}-${String(Date.now())}.git`)
  await rename(repository, aside)
  log.error({ repository, aside }, 'broken repository moved aside')
  warn(`the repository of ${project} was damaged; nothing was pushed to it, and it is made anew. The damaged one: ${aside}`)
}

/** Without a sandbox no git runs at all, a backup at work is waited for, and a wait may be cancelled: these are the caller's. Anything else concerns one repository, and must keep no other from its work. */
async function alone(work: Promise<void>, failed: (error: unknown) => unknown): Promise<void> {
  try {
    await work
  } catch (error) {
    if (['sandbox-unavailable', 'busy', 'interrupted'].includes(codeOf(error))) throw error
    await failed(error)
  }
}

function recoverRepository(deps: RecoveryDeps, business: string, project: string): Promise<void> {
  const repository = repositoryPath(deps.gitRoot, business, project)
  return deps.locks.withLock(repository, { timeoutMs: LOCK_TIMEOUT_MS, signal: deps.signal }, async () => {
    await sweep(deps, repository)
    await repairRefs(deps, repository, deps.expectedRefs(business, project))
  })
}

async function sweepMainStores(deps: RecoveryDeps, business: string): Promise<void> {
  const root = join(mainStoresRoot(deps.gitRoot), business)
  for (const name of await entriesOf(root)) {
    const repository = join(root, name)
    await alone(sweep(deps, repository), (err) => deps.log.error({ err, repository }, 'copy of main not swept'))
  }
}

async function recoverRepositories(deps: RecoveryDeps, business: string, projects: readonly string[]): Promise<void> {
  for (const project of projects) {
    const failed = (error: unknown): Promise<void> =>
      alone(putAside(deps, business, project, error), (err) => deps.log.error({ err, project }, 'repository stays as it is'))
    await alone(recoverRepository(deps, business, project), failed)
  }
}

/**
 * Puts a business's repositories right after a crash: locks, quarantines, half-made repositories removed, refs made what the
 * rows say. Idempotent. One that cannot be read is told and holds up no other. Call under the host lock, before anything else uses the
 * repositories. Throws `busy` while a backup holds one of them, `interrupted` when that wait is cancelled.
 */
export async function recoverGit(deps: RecoveryDeps, business: string): Promise<void> {
  await mkdir(join(deps.gitRoot, business), { recursive: true, mode: 0o700 })
  for (const name of await entriesOf(incomingRoot(deps.gitRoot))) await rm(join(incomingRoot(deps.gitRoot), name), { recursive: true, force: true })
  const entries = await entriesOf(join(deps.gitRoot, business))
  await sweepBusiness(join(deps.gitRoot, business), entries)
  const repositories = entries.filter((name) => name.endsWith('.git') && !name.startsWith('.'))
  await recoverRepositories(
    deps,
    business,
    repositories.map((name) => name.slice(0, -'.git'.length)),
  )
  await sweepMainStores(deps, business)
}
