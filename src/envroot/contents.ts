import { rmdirSync } from 'node:fs'
import type { Scope } from '../core/scope.ts'
import { errnoOf, messageOf } from '../core/errors.ts'
import type { Descriptors } from './descriptors.ts'
import { isLink, listNames } from './files.ts'
import { LOCK } from './lock.ts'
import { OWNER } from './owner.ts'
import { at, type PinnedDir } from './pin.ts'
import { type ClaimDeps, DIRECTORIES, STATE, type TreeDeps, WORKSPACE } from './ports.ts'
import { unsafe } from './refusals.ts'

export type Directories = Readonly<Record<(typeof DIRECTORIES)[number], PinnedDir>>

const KEPT = [LOCK, OWNER]

export const namesIn = (dir: PinnedDir): readonly string[] => listNames(dir).map((name) => name.toString('utf8'))

/** Pins one of an env root's directories. Throws `env-root-unsafe` when a link or a file is there, or when it cannot be read. */
function pinEntry(root: PinnedDir, name: string, create: boolean): PinnedDir | null {
  try {
    return root.child(name, { create })
  } catch (error) {
    const errno = errnoOf(error) ?? ''
    if (errno === 'ENOENT') return null
    if (['ENOSPC', 'EDQUOT'].includes(errno)) throw error
    throw unsafe(root.path, name, errno === 'ENOTDIR' || errno === 'ELOOP' ? 'is a link or no directory' : `cannot be opened: ${messageOf(error)}`, error)
  }
}

/** Refuses an env root whose directories are links or files, and clones' folders that are links, before anything is written. */
export function assertContents(root: PinnedDir, projects: readonly string[]): void {
  for (const name of DIRECTORIES) {
    const dir = pinEntry(root, name, false)
    try {
      const linked = dir !== null && name === WORKSPACE ? projects.find((project) => isLink(dir, project)) : undefined
      if (linked !== undefined) throw unsafe(root.path, `${WORKSPACE}/${linked}`, 'is a link')
    } finally {
      dir?.close()
    }
  }
}

/** Does the root's state/ hold what `look` looks for? */
export function holdsInState(root: PinnedDir, look: (state: PinnedDir) => boolean): boolean {
  const state = pinEntry(root, STATE, false)
  try {
    return state !== null && look(state)
  } finally {
    state?.close()
  }
}

/** Looks for work that a reset would lose; nothing without a workspace. */
export async function findUnsaved(deps: Pick<ClaimDeps, 'unsavedWork' | 'signal'>, root: PinnedDir): ReturnType<TreeDeps['unsavedWork']> {
  const workspace = pinEntry(root, WORKSPACE, false)
  try {
    return workspace === null ? [] : await deps.unsavedWork({ workspace, signal: deps.signal })
  } finally {
    workspace?.close()
  }
}

/** Removes every entry but the lock and the owner, and sees that nothing else is left. */
export async function emptyRoot(deps: Pick<ClaimDeps, 'emptyTree' | 'signal'>, root: PinnedDir): Promise<void> {
  await deps.emptyTree(root, KEPT, deps.signal)
  const left = namesIn(root).find((name) => !KEPT.includes(name))
  if (left !== undefined) throw unsafe(root.path, left, 'could not be removed')
}

/** Removes a directory that this claim made: at once when empty, else by the sandboxed removal, which leaves all other entries. */
async function removeMade(deps: Pick<TreeDeps, 'emptyTree'>, root: PinnedDir, name: string): Promise<void> {
  try {
    rmdirSync(at(root, name))
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return
    if (errnoOf(error) !== 'ENOTEMPTY' && errnoOf(error) !== 'EEXIST') throw error
    await deps.emptyTree(
      root,
      namesIn(root).filter((other) => other !== name),
    )
  }
}

/** Pins workspace, state and cache, making those that are not there. */
export function openDirectories(deps: Pick<TreeDeps, 'emptyTree'>, root: PinnedDir, opened: Descriptors, undo: Scope): Directories {
  const open = (name: string): PinnedDir => {
    const dir = pinEntry(root, name, true)
    if (dir === null) throw unsafe(root.path, name, 'keeps being removed')
    opened.add(() => {
      dir.close()
    })
    if (dir.created) undo.defer(() => removeMade(deps, root, name))
    return dir
  }
  return { workspace: open(WORKSPACE), state: open(STATE), cache: open('cache') }
}
