import { existsSync } from 'node:fs'
import { mkdir, readFile, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { syncPath, syncTree } from '../core/durable.ts'
import { AppError, errnoOf } from '../core/errors.ts'
import type { HelperResult, RunHelper } from '../core/run-helper.ts'
import { gitEnvironment } from './command.ts'
import { assertRoom } from './disk-full.ts'
import { MAIN_REF, mainStorePath, repositoryPath, sweepRepository } from './repository.ts'

/**
 * A bare repository beside each working repository that holds what main is and was, and nothing of any task. Where a program of an
 * agent runs (a filter in its clone), or where an agent's pack names objects by their ids, it stands for the working repository.
 */

const GLOBAL_CONFIG = '/tmp/mosaic.gitconfig'
const OID = /^[0-9a-f]{40}$/

export interface MainStoreDeps {
  readonly runHelper: RunHelper
  readonly gitRoot: string
}

export interface MainStoreOptions {
  readonly timeoutMs: number
  readonly signal?: AbortSignal | undefined
}

/** Over the file transport, which sends what main reaches and nothing else. Arguments: the working repository. */
const REFRESH_SCRIPT = String.raw`
set -u
umask 077
(umask 0333 && : >${GLOBAL_CONFIG}) || exit 70
git init --quiet --bare --template= --initial-branch=main || exit 71
exec git fetch --quiet --no-tags --no-write-fetch-head --no-auto-maintenance --no-recurse-submodules --end-of-options "$1" +${MAIN_REF}:${MAIN_REF}
`

/** The commit that main of one of our repositories is at, read from its files; null: there is none, or it is not plain. */
export async function mainOf(repository: string): Promise<string | null> {
  const textOf = (name: string): Promise<string> =>
    readFile(join(repository, name), 'utf8').catch((error: unknown) => {
      if (errnoOf(error) === 'ENOENT' || errnoOf(error) === 'ENOTDIR') return ''
      throw error
    })
  const loose = (await textOf(MAIN_REF)).trim()
  if (loose !== '') return OID.test(loose) ? loose : null
  return /^([0-9a-f]{40}) refs\/heads\/main$/m.exec(await textOf('packed-refs'))?.[1] ?? null
}

function refresh({ runHelper }: MainStoreDeps, repository: string, store: string, { timeoutMs, signal }: MainStoreOptions): Promise<HelperResult> {
  return runHelper({
    binds: [
      { bind: { path: repository }, readOnly: true },
      { bind: { path: store }, readOnly: false },
    ],
    command: ['/bin/sh', '-c', REFRESH_SCRIPT, 'refresh', repository],
    cwd: store,
    env: gitEnvironment({ globalConfig: GLOBAL_CONFIG, safeDirectories: [repository, store], gitDir: store, transport: 'file' }),
    timeoutMs,
    ...(signal === undefined ? {} : { signal }),
  })
}

/** In another name until all of it is on the disk: git syncs objects and refs, not HEAD and config, and a power cut would leave a store that is none. */
async function make(deps: MainStoreDeps, repository: string, store: string, options: MainStoreOptions): Promise<HelperResult> {
  const unfinished = `${store}.new`
  await rm(unfinished, { recursive: true, force: true })
  await mkdir(unfinished, { recursive: true, mode: 0o700 })
  const result = await refresh(deps, repository, unfinished, options)
  if (result.exitCode !== 0) {
    await rm(unfinished, { recursive: true, force: true })
    return result
  }
  await syncTree(unfinished)
  await rename(unfinished, store)
  await syncPath(dirname(store))
  return result
}

/** One that cannot be brought up to main is made anew, once: all of it is in the working repository. */
async function rebuild(deps: MainStoreDeps, repository: string, store: string, options: MainStoreOptions): Promise<HelperResult> {
  if (!existsSync(store)) return make(deps, repository, store, options)
  const result = await refresh(deps, repository, store, options)
  if (result.exitCode === 0) return result
  await sweepRepository(store)
  if (result.timedOut || options.signal?.aborted === true) return result
  assertRoom(result, 'main cannot be copied')
  await rm(store, { recursive: true, force: true })
  return make(deps, repository, store, options)
}

/**
 * The main-only store of a project, brought up to the working repository's main; free where main has not moved. Under the
 * repository's lock. Throws `busy`, `disk-full`.
 */
export async function ensureMainStore(deps: MainStoreDeps, business: string, project: string, options: MainStoreOptions): Promise<string> {
  const [repository, store] = [repositoryPath(deps.gitRoot, business, project), mainStorePath(deps.gitRoot, business, project)]
  const main = await mainOf(repository)
  if (main !== null && (await mainOf(store)) === main) return store
  await mkdir(dirname(store), { recursive: true, mode: 0o700 })
  const result = await rebuild(deps, repository, store, options)
  options.signal?.throwIfAborted()
  if (result.timedOut) throw new AppError('busy', 'copying main took too long')
  assertRoom(result, 'main cannot be copied')
  if (result.exitCode !== 0) throw new Error(`copying main failed (exit ${String(result.exitCode)}): ${result.stderr.slice(-500)}`)
  return store
}

/** Is main of the store where the working repository's is? Then nobody needs the lock to use it. */
export async function currentMainStore(gitRoot: string, business: string, project: string, tip: string): Promise<string | null> {
  const store = mainStorePath(gitRoot, business, project)
  return (await mainOf(store)) === tip ? store : null
}
