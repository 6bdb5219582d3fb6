import { rmdirSync } from 'node:fs'
import { errnoOf } from '../core/errors.ts'
import { emptyRoot, namesIn } from './contents.ts'
import { unlinkIfThere } from './files.ts'
import { createHoldScopes, holdRoot } from './hold.ts'
import { LOCK } from './lock.ts'
import { OWNER, OWNER_TEMPORARY, type Owner, readOwner, writeOwner } from './owner.ts'
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

/** Names the run that the cut-off one took over from: its own is in no record, so that nobody would know when the root was used last. */
function giveBack(root: PinnedDir, { before, ...owner }: Owner): void {
  if (before !== undefined) writeOwner(root, { ...owner, run: before.run, continues: before.continues })
}

async function undo(deps: ClaimDeps, { business, env, run, created }: CutOffClaim, root: PinnedDir): Promise<void> {
  const found = readOwner(root)
  const owner = found.kind === 'owned' ? found.owner : null
  // theirs, or nobody's yet
  if (owner === null ? found.kind !== 'absent' && found.kind !== 'torn' : owner.run !== run) return
  if (owner !== null) giveBack(root, owner)
  // one that is being reset waits for the next claim to end that
  if (owner?.resetting === true) return
  if (created) await emptyRoot(deps, root)
  for (const name of DIRECTORIES) removeIfEmpty(root, name)
  // with content it was there before: it stays, for the next launch to keep
  if (namesIn(root).some((name) => !FILES.includes(name))) return
  for (const name of FILES) unlinkIfThere(root, name)
  removeEmpty(deps.dataRoot, [ENVS, business, env], root.identity)
}

/** Removes the env root that a launch made and never used; one with a history stays, and is its earlier run's again. None there is no error. Idempotent. */
export async function undoCutOffClaim(deps: ClaimDeps, claim: CutOffClaim): Promise<void> {
  const { business, env, run } = claim
  const scopes = createHoldScopes()
  try {
    const held = await holdRoot(deps, { business, env, run }, false, scopes)
    if (held !== null) await undo(deps, claim, held.root)
  } finally {
    // nothing was made that is not wanted: only the descriptors go
    scopes.opened.close()
  }
}
