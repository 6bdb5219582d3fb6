import { closeSync, fstatSync } from 'node:fs'
import { createScope, type Scope } from '../core/scope.ts'
import { errnoOf, messageOf } from '../core/errors.ts'
import { createDescriptors, type Descriptors } from './descriptors.ts'
import { unlinkIfThere } from './files.ts'
import { LOCK, takeLock } from './lock.ts'
import { runOfOwner } from './owner.ts'
import { leadsTo, type PinnedDir, removeEmpty, walkTo } from './pin.ts'
import { ENVS, type LockDeps } from './ports.ts'
import { busy, swapped, unsafe } from './refusals.ts'

const ATTEMPTS = 10

export interface Place {
  readonly business: string
  readonly env: string
  /** The run that claims it; it is no other holder to itself. */
  readonly run: string | null
}

export interface Held {
  readonly root: PinnedDir
  readonly lockFd: number
}

/** `opened` closes descriptors in any case; `undo` takes back what was made, while the lock is still held. */
export interface HoldScopes {
  readonly opened: Descriptors
  readonly undo: Scope
}

export const createHoldScopes = (): HoldScopes => ({ opened: createDescriptors(), undo: createScope() })

const namesOf = (place: Place): readonly [string, string, string] => [ENVS, place.business, place.env]

/** Which of the names is no directory that we can open: the first that fails, alone. */
function blame(deps: LockDeps, place: Place, error: unknown): Error {
  const path = [deps.dataRoot.path, ...namesOf(place)].join('/')
  const what = ['ENOTDIR', 'ELOOP'].includes(errnoOf(error) ?? '') ? 'is a link or no directory' : `cannot be opened: ${messageOf(error)}`
  const above = [[ENVS], [ENVS, place.business]].find((names) => {
    try {
      walkTo(deps.dataRoot, names).close()
      return false
    } catch {
      return true
    }
  })
  return unsafe(path, above?.at(-1) ?? 'root', what, error)
}

/** Pins the env root, making it with `create`; null when it is not there. Throws `env-root-unsafe`. */
function pinRoot(deps: LockDeps, place: Place, create: boolean, undo: Scope): PinnedDir | null {
  const names = namesOf(place)
  try {
    return walkTo(deps.dataRoot, names, {
      create,
      made: (depth, identity) => {
        undo.defer(() => removeEmpty(deps.dataRoot, names.slice(0, depth), identity))
      },
    })
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return null
    if (['ENOSPC', 'EDQUOT', 'EROFS', 'EMFILE', 'ENFILE'].includes(errnoOf(error) ?? '')) throw error
    throw blame(deps, place, error)
  }
}

function assertOurs(root: PinnedDir): void {
  const { uid } = fstatSync(root.fd)
  if (uid !== process.geteuid?.()) throw unsafe(root.path, 'root', `belongs to uid ${String(uid)}`)
}

const holderOf = (deps: LockDeps, { business, env, run }: Place): string | null => deps.holderOf(business, env, run)

/** Under the lock: the name must still lead here, and no run that the store knows may live in it (its lock file was replaced then). */
function assertAlone(deps: LockDeps, place: Place, root: PinnedDir): void {
  if (!leadsTo(deps.dataRoot, namesOf(place), root.identity)) throw swapped(root.path, 'root')
  const holder = holderOf(deps, place)
  if (holder !== null) throw busy(holder)
}

/** One try; undefined: the directory went away between its opening and its lock. */
async function holdOnce(deps: LockDeps, place: Place, create: boolean, scopes: HoldScopes): Promise<Held | null | undefined> {
  await deps.hooks?.before('pin')
  const root = pinRoot(deps, place, create, scopes.undo)
  if (root === null) return create ? undefined : null
  scopes.opened.add(() => {
    root.close()
  })
  assertOurs(root)
  await deps.hooks?.before('lock')
  const lock = await takeLock(deps, root)
  if (lock.kind === 'gone') return create ? undefined : null
  if (lock.kind === 'held') throw busy(holderOf(deps, place) ?? runOfOwner(root))
  scopes.opened.add(() => {
    closeSync(lock.fd)
  })
  if (lock.created) {
    scopes.undo.defer(() => {
      unlinkIfThere(root, LOCK)
    })
  }
  assertAlone(deps, place, root)
  return { root, lockFd: lock.fd }
}

/**
 * Pin → open lock → flock → inode check. null: there is no such root (only without `create`).
 * Throws `env-root-unsafe`, `env-root-busy`, `env-root-swapped`.
 */
export async function holdRoot(deps: LockDeps, place: Place, create: boolean, scopes: HoldScopes): Promise<Held | null> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const held = await holdOnce(deps, place, create, scopes)
    if (held !== undefined) return held
  }
  throw unsafe([deps.dataRoot.path, ...namesOf(place)].join('/'), 'root', 'keeps being removed')
}

/** Undoes and lets go after a failure; what could not be undone is logged, and the failure itself is what is told. */
export async function giveUp(deps: LockDeps, place: Place, scopes: HoldScopes): Promise<void> {
  await scopes.undo.close().catch((error: unknown) => {
    deps.log.warn({ err: error, env: place.env }, 'undoing a claim failed')
  })
  scopes.opened.close()
}
