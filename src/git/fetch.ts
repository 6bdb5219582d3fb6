import { stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { AppError, errnoOf } from '../core/errors.ts'
import { gitEnvironment } from './command.ts'
import { assertRoom } from './disk-full.ts'
import type { RepositoryLocks } from './lock.ts'
import { readHeads, type RefDeps } from './refs.ts'
import { MAIN_REF, repositoryPath, workRef } from './repository.ts'

const BUNDLE_TIMEOUT_MS = 120_000
const LOCK_TIMEOUT_MS = 60_000

export interface FetchDeps extends RefDeps {
  readonly gitRoot: string
  readonly locks: RepositoryLocks
}

export interface FetchRequest {
  readonly business: string
  readonly project: string
  /** Tasks whose work may be seen by the peer, beside main. */
  readonly tasks: readonly string[]
  readonly have: readonly string[]
  /** Gets the bundle. */
  readonly directory: string
  readonly signal?: AbortSignal | undefined
}

export interface FetchedBundle {
  /** 0: the peer has it all. */
  readonly sizeBytes: number
  /** By the name that the peer sees: a task is a branch. */
  readonly tips: Readonly<Record<string, string>>
  readonly path: string
}

/**
 * The refs stand in the file `refs`: there may be more than arguments. Standard input: what the peer has. What of it we lack is left
 * out, and what these refs do not reach as if we lacked it: it is another task's.
 */
const BUNDLE_SCRIPT = String.raw`
set -u
git cat-file --batch-check='%(objecttype) %(objectname)' >have || exit 70
sed -n 's/^commit //p' have >there
sed 's/^/^/' refs | cat there - | git rev-list --stdin >beyond || exit 70
sort there >there.sorted && sort beyond >beyond.sorted && comm -23 there.sorted beyond.sorted >common || exit 70
sed 's/^/^/' common >revs && cat refs >>revs || exit 70
git rev-list --max-count=1 --stdin <revs >news || exit 71
[ -s news ] || exit 0
git bundle create --quiet --version=2 bundle --stdin <revs || exit 72
`

const sizeOf = (path: string): Promise<number> =>
  stat(path).then(
    ({ size }) => size,
    (error: unknown) => {
      if (errnoOf(error) === 'ENOENT') return 0
      throw error
    },
  )

async function makeBundle(deps: FetchDeps, repository: string, refs: readonly string[], request: FetchRequest): Promise<void> {
  const { directory, have, signal } = request
  await writeFile(join(directory, 'refs'), refs.map((ref) => `${ref}\n`).join(''))
  const result = await deps.runHelper({
    binds: [
      { bind: { path: deps.globalConfig }, readOnly: true },
      { bind: { path: repository }, readOnly: true },
      { bind: { path: directory }, readOnly: false },
    ],
    command: ['/bin/sh', '-c', BUNDLE_SCRIPT, 'bundle'],
    cwd: directory,
    env: gitEnvironment({ globalConfig: deps.globalConfig, safeDirectories: [repository], gitDir: repository }),
    input: have.map((oid) => `${oid}\n`).join(''),
    timeoutMs: BUNDLE_TIMEOUT_MS,
    ...(signal === undefined ? {} : { signal }),
  })
  if (result.timedOut) throw new AppError('busy', 'making the bundle took too long')
  assertRoom(result, 'the bundle cannot be made')
  if (result.exitCode !== 0) throw new Error(`making a bundle failed (exit ${String(result.exitCode)}): ${result.stderr.slice(-500)}`)
}

interface ShownTip {
  readonly ref: string
  /** As the peer sees it: a task is a branch. */
  readonly name: string
  readonly tip: string
}

async function shownTips(deps: RefDeps, repository: string, tasks: readonly string[]): Promise<readonly ShownTip[]> {
  const all = await readHeads(deps, repository)
  const names = new Map([[MAIN_REF, MAIN_REF], ...tasks.map((task) => [workRef(task), `refs/heads/${task}`] as const)])
  return [...names].flatMap(([ref, name]) => {
    const tip = all.get(ref)
    return tip === undefined ? [] : [{ ref, name, tip }]
  })
}

const toTips = (shown: readonly ShownTip[]): FetchedBundle['tips'] => Object.fromEntries(shown.map(({ name, tip }) => [name, tip]))

/** Main and these tasks' work. Without the lock: a ref is one file, and what a push that is under way makes of it may be seen or not. */
export async function tipsOf(
  deps: RefDeps & { readonly gitRoot: string },
  request: Pick<FetchRequest, 'business' | 'project' | 'tasks'>,
): Promise<FetchedBundle['tips']> {
  return toTips(await shownTips(deps, repositoryPath(deps.gitRoot, request.business, request.project), request.tasks))
}

/** A bundle of main and of these tasks' work, without what the peer has. Throws `busy`. */
export async function bundleFor(deps: FetchDeps, request: FetchRequest): Promise<FetchedBundle> {
  const { business, project, tasks, have, directory, signal } = request
  const repository = repositoryPath(deps.gitRoot, business, project)
  return deps.locks.withLock(repository, { timeoutMs: LOCK_TIMEOUT_MS, signal }, async () => {
    const shown = await shownTips(deps, repository, tasks)
    // who has every tip gets nothing, and git need not be asked
    if (!shown.every(({ tip }) => have.includes(tip)))
      await makeBundle(
        deps,
        repository,
        shown.map(({ ref }) => ref),
        request,
      )
    const path = join(directory, 'bundle')
    return { sizeBytes: await sizeOf(path), tips: toTips(shown), path }
  })
}
