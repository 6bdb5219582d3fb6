import { rmdirSync } from 'node:fs'
import { errnoOf } from '../core/errors.ts'
import { emptyRoot, namesIn } from './contents.ts'
import { unlinkIfThere } from './files.ts'
import { createHoldScopes, holdRoot } from './hold.ts'
import { LOCK } from './lock.ts'
import { OWNER, OWNER_TEMPORARY, readOwner } from './owner.ts'
import { at, type PinnedDir, removeEmpty } from './pin.ts'
import { type ClaimDeps, DIRECTORIES, ENVS } from './ports.ts'

/** A claim of a launch that a crash cut off before anything ran in the root. */
export interface CutOffClaim {
  readonly business: string
  readonly env: string
  readonly run: string
  /** The store says that this claim made the root; what is in it was put there by its preparation alone. */
  readonly created: boolean
}

const FILES = [LOCK, OWNER, OWNER_TEMPORARY]

function removeIfEmpty(root: PinnedDir, name: string): void {
  try {
    rmdirSync(at(root, name))
  } catch (error) {
    if (!['ENOTEMPTY', 'EEXIST', 'ENOENT', 'ENOTDIR'].includes(errnoOf(error) ?? '')) throw error
  }
}

/** Does the root belong to the run that was cut off, or to nobody yet? One that is being reset waits for the next claim to end that. */
function isTheirs(root: PinnedDir, run: string): boolean {
  const found = readOwner(root)
  if (found.kind === 'owned') return found.owner.run === run && found.owner.resetting !== true
  return found.kind === 'absent' || found.kind === 'torn'
}

async function remove(deps: ClaimDeps, { business, env, run, created }: CutOffClaim, root: PinnedDir): Promise<void> {
  if (!isTheirs(root, run)) return
  if (created) await emptyRoot(deps, root)
  for (const name of DIRECTORIES) removeIfEmpty(root, name)
  // with content it was there before: it stays, for the next launch to keep
  if (namesIn(root).some((name) => !FILES.includes(name))) return
  for (const name of FILES) unlinkIfThere(root, name)
  removeEmpty(deps.dataRoot, [ENVS, business, env], root.identity)
}

/** Removes the env root that a launch made and never used; one with a history stays as it is. None there is no error. Idempotent. */
export async function undoCutOffClaim(deps: ClaimDeps, claim: CutOffClaim): Promise<void> {
  const { business, env, run } = claim
  const scopes = createHoldScopes()
  try {
    const held = await holdRoot(deps, { business, env, run }, false, scopes)
    if (held !== null) await remove(deps, claim, held.root)
  } finally {
    // nothing was made that is not wanted: only the descriptors go
    scopes.opened.close()
  }
}
