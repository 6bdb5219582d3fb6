import { join } from 'node:path'
import { messageOf } from '../core/errors.ts'
import { emptyRoot, findUnsaved } from './contents.ts'
import { isEnvRefusal } from './decide.ts'
import { unlinkIfThere } from './files.ts'
import { type GcDeps, type GcRequest, type GcRow, isDue } from './gc-types.ts'
import { createHoldScopes, giveUp, type Held, holdRoot, type HoldScopes } from './hold.ts'
import { openEnvs, openRoot } from './list.ts'
import { LOCK } from './lock.ts'
import { OWNER, OWNER_TEMPORARY, type Owner, readOwner, writeOwner } from './owner.ts'
import { type PinnedDir, removeEmpty } from './pin.ts'
import { ENVS } from './ports.ts'
import { measureTree } from './size.ts'

const CACHE = 'cache'

/** The owner, when it is this env root's own and its last run ended long ago. */
function dueOwner(deps: GcDeps, request: GcRequest, env: string, root: PinnedDir): Owner | null {
  const found = readOwner(root)
  if (found.kind !== 'owned') return null
  const { owner } = found
  return owner.business === request.business && owner.env === env && isDue(deps, request, owner.run) ? owner : null
}

/** Looked at without the lock, so that a root in use is not even touched. */
function mayBeDue(deps: GcDeps, request: GcRequest, env: string): boolean {
  const envs = openEnvs(deps.dataRoot, request.business)
  const root = envs === null ? null : openRoot(envs, env)
  try {
    return root !== null && dueOwner(deps, request, env, root) !== null
  } finally {
    root?.close()
    envs?.close()
  }
}

/** Marked first, so that a crash leaves a root whose reset is to be ended; owner and lock last. */
async function removeRoot(deps: GcDeps, place: { readonly business: string; readonly env: string }, root: PinnedDir, owner: Owner): Promise<void> {
  writeOwner(root, { ...owner, resetting: true })
  await emptyRoot(deps, root)
  for (const name of [OWNER_TEMPORARY, OWNER, LOCK]) unlinkIfThere(root, name)
  removeEmpty(deps.dataRoot, [ENVS, place.business, place.env], root.identity)
}

async function reclaimRoot(deps: GcDeps, request: GcRequest, env: string, root: PinnedDir, owner: Owner): Promise<GcRow> {
  const { sizeBytes } = await measureTree(root)
  if (request.apply) await removeRoot(deps, { business: request.business, env }, root, owner)
  return { kind: 'env-root', name: env, path: root.path, sizeBytes, action: request.apply ? 'removed' : 'reclaim', why: null }
}

async function reclaimCache(deps: GcDeps, request: GcRequest, env: string, root: PinnedDir): Promise<readonly GcRow[]> {
  const cache = openRoot(root, CACHE)
  if (cache === null) return []
  try {
    const { sizeBytes } = await measureTree(cache)
    if (sizeBytes === 0) return []
    if (request.apply) await deps.emptyTree(cache, [])
    return [{ kind: 'cache', name: env, path: cache.path, sizeBytes, action: request.apply ? 'removed' : 'reclaim', why: null }]
  } finally {
    cache.close()
  }
}

const toKept = (env: string, path: string, sizeBytes: number, why: string): GcRow => ({ kind: 'env-root', name: env, path, sizeBytes, action: 'kept', why })

async function reclaimHeld(deps: GcDeps, request: GcRequest, env: string, { root }: Held): Promise<readonly GcRow[]> {
  const owner = dueOwner(deps, request, env, root)
  if (owner === null) return []
  const work = owner.resetting === true ? [] : await findUnsaved(deps, root)
  if (work.length === 0) return [await reclaimRoot(deps, request, env, root, owner)]
  const why = work.map((one) => `${one.project}: ${one.reason}`).join(', ')
  return [toKept(env, root.path, (await measureTree(root)).sizeBytes, why), ...(await reclaimCache(deps, request, env, root))]
}

async function reclaimLocked(deps: GcDeps, request: GcRequest, env: string, scopes: HoldScopes): Promise<readonly GcRow[]> {
  const held = await holdRoot(deps, { business: request.business, env, run: null }, false, scopes)
  return held === null ? [] : reclaimHeld(deps, request, env, held)
}

/** One env root that is due: the whole of it, or its cache where the rest is kept; why, when it is kept. One that fails does not stop the others. */
export async function reclaimCacheOrRoot(deps: GcDeps, request: GcRequest, env: string): Promise<readonly GcRow[]> {
  if (!mayBeDue(deps, request, env)) return []
  const scopes = createHoldScopes()
  try {
    return await reclaimLocked(deps, request, env, scopes)
  } catch (error) {
    if (!isEnvRefusal(error)) deps.log.warn({ err: error, env }, 'reclaiming an env root failed')
    return [toKept(env, join(deps.dataRoot.path, ENVS, request.business, env), 0, messageOf(error))]
  } finally {
    await giveUp(deps, { business: request.business, env, run: null }, scopes)
  }
}
