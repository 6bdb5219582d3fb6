import { closeSync, constants, fstatSync, lstatSync, openSync } from 'node:fs'
import { errnoOf } from '../core/errors.ts'
import { notPlain, openPlain, unlinkIfThere, whyUnopened } from './files.ts'
import { at, type PinnedDir, toIdentity } from './pin.ts'
import type { Hooks, LockDeps } from './ports.ts'
import { unsafe } from './refusals.ts'

export const LOCK = 'lock'
const ATTEMPTS = 10
/** Not the lock's fault: its directory is gone, or the disk is full. */
const SYSTEM: ReadonlySet<string> = new Set(['ENOENT', 'ENOSPC', 'EDQUOT'])
const { O_CREAT, O_EXCL, O_NOFOLLOW, O_NONBLOCK, O_RDWR } = constants

interface OpenLock {
  readonly fd: number
  readonly created: boolean
}
/** `gone`: the directory was removed under us, as by the undo of another launch; pin again. */
export type LockTaken = { readonly kind: 'taken'; readonly fd: number; readonly created: boolean } | { readonly kind: 'held' } | { readonly kind: 'gone' }

function tryOpen(root: PinnedDir, flags: number, passed: string): number | undefined {
  try {
    return openSync(at(root, LOCK), O_RDWR | O_NOFOLLOW | O_NONBLOCK | flags, 0o600)
  } catch (error) {
    if (errnoOf(error) === passed) return undefined
    if (SYSTEM.has(errnoOf(error) ?? '')) throw error
    throw unsafe(root.path, LOCK, whyUnopened(error), error)
  }
}

/** Opens the lock, or makes it; null when it came and went. O_EXCL makes nothing through a dangling link and tells who made it. */
function openLock(root: PinnedDir): OpenLock | null {
  const existing = tryOpen(root, 0, 'ENOENT')
  if (existing !== undefined) return { fd: existing, created: false }
  const made = tryOpen(root, O_CREAT | O_EXCL, 'EEXIST')
  return made === undefined ? null : { fd: made, created: true }
}

function assertPlain(root: PinnedDir, fd: number): void {
  const stat = fstatSync(fd)
  const why = notPlain(stat)
  if (why !== null) throw unsafe(root.path, LOCK, why)
}

/** Is the locked file still the one that the name leads to? If not, somebody else may lock the file of that name too. */
export function isNamedLock(root: PinnedDir, fd: number): boolean {
  const held = fstatSync(fd, { bigint: true })
  const named = lstatSync(at(root, LOCK), { bigint: true, throwIfNoEntry: false })
  return named !== undefined && toIdentity(named) === toIdentity(held) && held.nlink === 1n
}

/** Takes back a lock file that was made, unless somebody has locked it since: whoever opened it meanwhile sees by its inode that it is gone. */
function unlinkUnheld(deps: Pick<LockDeps, 'tryFlock'>, root: PinnedDir, fd: number): void {
  if (deps.tryFlock(fd) && isNamedLock(root, fd)) unlinkIfThere(root, LOCK)
}

async function takeOnce(deps: Pick<LockDeps, 'tryFlock'> & { readonly hooks?: Hooks | undefined }, root: PinnedDir): Promise<LockTaken | null> {
  const opened = openLock(root)
  if (opened === null) return null
  let kept = false
  try {
    assertPlain(root, opened.fd)
    await deps.hooks?.before('flock')
    if (!deps.tryFlock(opened.fd)) return { kind: 'held' }
    await deps.hooks?.before('inode-check')
    if (!isNamedLock(root, opened.fd)) return null
    kept = true
    return { kind: 'taken', ...opened }
  } catch (error) {
    if (opened.created) unlinkUnheld(deps, root, opened.fd)
    throw error
  } finally {
    if (!kept) closeSync(opened.fd)
  }
}

/** Takes the lock of a pinned env root without waiting. Throws `env-root-unsafe`, naming the lock. Released by closing, never by LOCK_UN. flock(2) */
export async function takeLock(deps: Pick<LockDeps, 'tryFlock'> & { readonly hooks?: Hooks | undefined }, root: PinnedDir): Promise<LockTaken> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    try {
      const taken = await takeOnce(deps, root)
      if (taken !== null) return taken
    } catch (error) {
      if (errnoOf(error) === 'ENOENT') return { kind: 'gone' }
      throw error
    }
  }
  throw unsafe(root.path, LOCK, 'keeps being replaced')
}

/**
 * Does somebody hold the lock? Makes no file. The lock is taken and closed within one turn of the loop, so no claim of
 * this process (and there is one host a data root) can meet it held.
 */
export function isHeld(deps: Pick<LockDeps, 'tryFlock'>, root: PinnedDir): boolean {
  const opened = openPlain(root, LOCK)
  if (opened.kind !== 'open') return false
  try {
    return !deps.tryFlock(opened.fd)
  } finally {
    closeSync(opened.fd)
  }
}
