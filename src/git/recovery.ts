import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Log } from '../core/log.ts'
import { isLockLive, lockPathOf, type RepositoryLocks } from './lock.ts'
import { knownCommits, listRefs, moveRef, type RefDeps } from './refs.ts'
import { entriesOf, incomingRoot, mainStoresRoot, sweepRepository } from './repository.ts'

export interface RecoveryDeps extends RefDeps {
  readonly gitRoot: string
  readonly log: Log
  readonly locks: RepositoryLocks
  /** What the rows say a repository's work and approved refs are: full ref names and commits. */
  readonly expectedRefs: (business: string, project: string) => ReadonlyMap<string, string>
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

function recoverRepository(deps: RecoveryDeps, business: string, name: string): Promise<void> {
  const repository = join(deps.gitRoot, business, name)
  return deps.locks.withLock(repository, { timeoutMs: LOCK_TIMEOUT_MS }, async () => {
    const swept = await sweepRepository(repository)
    if (swept.length > 0) deps.log.warn({ repository, swept }, 'stale git files removed')
    await repairRefs(deps, repository, deps.expectedRefs(business, name.slice(0, -'.git'.length)))
  })
}

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

async function sweepMainStores({ gitRoot, log }: RecoveryDeps, business: string): Promise<void> {
  const root = join(mainStoresRoot(gitRoot), business)
  for (const name of await entriesOf(root)) {
    const swept = await sweepRepository(join(root, name))
    if (swept.length > 0) log.warn({ repository: join(root, name), swept }, 'stale git files removed')
  }
}

/**
 * Puts a business's repositories right after a crash: locks, quarantines, half-made repositories removed, refs made what the
 * rows say. Idempotent. Call under the host lock, before anything else uses the repositories. Throws `busy` while a backup holds one of them.
 */
export async function recoverGit(deps: RecoveryDeps, business: string): Promise<void> {
  await mkdir(join(deps.gitRoot, business), { recursive: true, mode: 0o700 })
  for (const name of await entriesOf(incomingRoot(deps.gitRoot))) await rm(join(incomingRoot(deps.gitRoot), name), { recursive: true, force: true })
  const entries = await entriesOf(join(deps.gitRoot, business))
  await sweepBusiness(join(deps.gitRoot, business), entries)
  for (const name of entries.filter((entry) => entry.endsWith('.git') && !entry.startsWith('.'))) await recoverRepository(deps, business, name)
  await sweepMainStores(deps, business)
}
