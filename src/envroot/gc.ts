import { errnoOf, messageOf } from '../core/errors.ts'
import { isRunId } from '../core/ids.ts'
import { namesIn } from './contents.ts'
import { type GcDeps, type GcRequest, type GcRow, isDue } from './gc-types.ts'
import { reclaimCacheOrRoot } from './gc-env.ts'
import { isEnvName, openEnvs } from './list.ts'
import { type PinnedDir, removeEmpty, walkTo } from './pin.ts'
import { LAUNCHES } from './ports.ts'
import { openRunDirectoryOf } from './rundir.ts'
import { measureTree } from './size.ts'

function openLaunches(dataRoot: PinnedDir, business: string): PinnedDir | null {
  try {
    return walkTo(dataRoot, [LAUNCHES, business])
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return null
    throw error
  }
}

/** Its home/ was an agent's: emptied in a sandbox, then removed if nothing is left. null: it is gone; else why it is not. */
async function removeRun(deps: GcDeps, business: string, run: string, dir: PinnedDir): Promise<string | null> {
  try {
    await deps.emptyTree(dir, [])
    return removeEmpty(deps.dataRoot, [LAUNCHES, business, run], dir.identity) ? null : 'it could not be emptied'
  } catch (error) {
    deps.log.warn({ err: error, run }, 'reclaiming a run directory failed')
    return messageOf(error)
  }
}

async function reclaimRun(deps: GcDeps, request: GcRequest, run: string): Promise<GcRow | null> {
  const dir = openRunDirectoryOf(deps, request.business, run)
  if (dir === null) return null
  try {
    const row = { kind: 'run-directory', name: run, path: dir.path, sizeBytes: (await measureTree(dir)).sizeBytes } as const
    if (!request.apply) return { ...row, action: 'reclaim', why: null }
    const why = await removeRun(deps, request.business, run, dir)
    return { ...row, action: why === null ? 'removed' : 'kept', why }
  } finally {
    dir.close()
  }
}

function dueRuns(deps: GcDeps, request: GcRequest): readonly string[] {
  const launches = openLaunches(deps.dataRoot, request.business)
  if (launches === null) return []
  try {
    return namesIn(launches).filter((name) => isRunId(name) && isDue(deps, request, name))
  } finally {
    launches.close()
  }
}

function envNames(deps: GcDeps, business: string): readonly string[] {
  const envs = openEnvs(deps.dataRoot, business)
  if (envs === null) return []
  try {
    return namesIn(envs).filter(isEnvName).sort()
  } finally {
    envs.close()
  }
}

/**
 * What runs that ended longer than `keepRunsMs` ago left: their directories, the env roots they used last, or, where such
 * a root is kept for the work in it, its cache. Never a live, unsaved or foreign root; the owner file, which says whose it is, goes last.
 */
export async function collectGarbage(deps: GcDeps, request: GcRequest): Promise<readonly GcRow[]> {
  const rows: (GcRow | null)[] = []
  for (const run of dueRuns(deps, request)) rows.push(await reclaimRun(deps, request, run))
  for (const env of envNames(deps, request.business)) rows.push(...(await reclaimCacheOrRoot(deps, request, env)))
  return rows.filter((row) => row !== null)
}
