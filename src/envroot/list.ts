import { errnoOf, messageOf } from '../core/errors.ts'
import type { EnvRow } from '../protocol/rows.ts'
import { findUnsaved, namesIn } from './contents.ts'
import { isHeld } from './lock.ts'
import { type Owner, readOwner } from './owner.ts'
import { isSegment, type PinnedDir, walkTo } from './pin.ts'
import { ENVS, type LockDeps, type TreeDeps, type Unsaved } from './ports.ts'
import { isEnvRefusal } from './decide.ts'
import { measureTree } from './size.ts'

type ListDeps = Pick<LockDeps, 'dataRoot' | 'tryFlock' | 'holderOf'> & Pick<TreeDeps, 'unsavedWork'>

/** `.released` and whatever else no launch could use is no env root. */
export const isEnvName = (name: string): boolean => isSegment(name) && !name.startsWith('.') && !name.includes('\uFFFD')

/** Pins envs/<business>; null when there is none. */
export function openEnvs(dataRoot: PinnedDir, business: string): PinnedDir | null {
  try {
    return walkTo(dataRoot, [ENVS, business])
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return null
    throw error
  }
}

/** An env root for looking at; null when its name leads to no directory that we can open. */
export function openRoot(envs: PinnedDir, env: string): PinnedDir | null {
  try {
    return envs.child(env)
  } catch {
    return null
  }
}

function ownerOf(root: PinnedDir): Owner | null {
  const found = readOwner(root)
  return found.kind === 'owned' ? found.owner : null
}

/** Only where no session lives, and without the lock: a launch must not be refused because somebody looked. */
async function unsavedIn(deps: ListDeps, root: PinnedDir, held: boolean): Promise<readonly Unsaved[]> {
  if (held) return []
  try {
    return await findUnsaved(deps, root)
  } catch (error) {
    if (isEnvRefusal(error)) return []
    throw error
  }
}

async function toRow(deps: ListDeps, business: string, env: string, root: PinnedDir): Promise<EnvRow> {
  const owner = ownerOf(root)
  const holder = deps.holderOf(business, env, null)
  const held = isHeld(deps, root)
  return {
    env,
    business,
    instance: owner?.instance ?? null,
    task: owner?.task ?? null,
    ownerRun: owner?.run ?? null,
    held,
    holderRun: held ? (holder ?? owner?.run ?? null) : null,
    sizeBytes: (await measureTree(root)).sizeBytes,
    unsaved: await unsavedIn(deps, root, held),
    envRoot: root.path,
    problem: null,
  }
}

const toUnreadable = (business: string, env: string, envRoot: string, problem: string): EnvRow => ({
  env,
  business,
  instance: null,
  task: null,
  ownerRun: null,
  held: false,
  holderRun: null,
  sizeBytes: 0,
  unsaved: [],
  envRoot,
  problem,
})

/** One that cannot be looked at says so, and hides no other. */
async function look(deps: ListDeps, business: string, envs: PinnedDir, env: string): Promise<EnvRow> {
  const path = `${envs.path}/${env}`
  const root = openRoot(envs, env)
  if (root === null) return toUnreadable(business, env, path, 'it is no directory that can be opened')
  try {
    return await toRow(deps, business, env, root)
  } catch (error) {
    return toUnreadable(business, env, path, messageOf(error))
  } finally {
    root.close()
  }
}

/** A look is a sandbox with git in it, and may take its whole time. */
const LOOKS_AT_ONCE = 4

async function inParallel<T, R>(items: readonly T[], work: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = []
  const waiting = [...items.entries()]
  const take = async (): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) results[next[0]] = await work(next[1])
  }
  const ended = await Promise.allSettled(Array.from({ length: LOOKS_AT_ONCE }, take))
  for (const end of ended) if (end.status === 'rejected') throw end.reason
  return results
}

/** One row an env root, by name. Takes and makes nothing. */
export async function listEnvRoots(deps: ListDeps, business: string): Promise<readonly EnvRow[]> {
  const envs = openEnvs(deps.dataRoot, business)
  if (envs === null) return []
  try {
    return await inParallel(namesIn(envs).filter(isEnvName).sort(), (env) => look(deps, business, envs, env))
  } finally {
    envs.close()
  }
}

/** Does an execution live in this env root? false also when there is none. For recovery, which waits until it is free. */
export function isEnvRootHeld(deps: Pick<LockDeps, 'dataRoot' | 'tryFlock'>, business: string, env: string): boolean {
  const envs = openEnvs(deps.dataRoot, business)
  const root = envs === null ? null : openRoot(envs, env)
  try {
    return root !== null && isHeld(deps, root)
  } finally {
    root?.close()
    envs?.close()
  }
}
