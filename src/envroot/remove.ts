import { closeSync, rmdirSync, unlinkSync } from 'node:fs'
import { errnoOf } from '../core/errors.ts'
import { listNames } from './files.ts'
import { atBytes, openDirectory, type PinnedDir } from './pin.ts'

const MAX_DEPTH = 64

type Dir = Pick<PinnedDir, 'fd'>

/** unlink(2) never follows a link; on a directory it fails with EISDIR. */
function isDirectoryLeft(dir: Dir, name: Buffer): boolean {
  try {
    unlinkSync(atBytes(dir, name))
    return false
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return false
    if (errnoOf(error) !== 'EISDIR') throw error
    return true
  }
}

function removeEntry(dir: Dir, name: Buffer, depth: number): void {
  if (!isDirectoryLeft(dir, name)) return
  if (depth >= MAX_DEPTH) throw new Error('a tree of ours is never that deep')
  const fd = openDirectory(atBytes(dir, name))
  try {
    removeEntries({ fd }, depth + 1)
  } finally {
    closeSync(fd)
  }
  rmdirSync(atBytes(dir, name))
}

function removeEntries(dir: Dir, depth: number): void {
  for (const name of listNames(dir)) removeEntry(dir, name, depth)
}

/** Empties a directory that no agent has written to yet, by descriptor, following no link. What agents wrote goes through `emptyTree`. */
export function emptyOwn(dir: PinnedDir): void {
  removeEntries(dir, 0)
}
