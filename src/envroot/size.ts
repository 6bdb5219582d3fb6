import { type BigIntStats, closeSync, type Dir, lstatSync, opendirSync } from 'node:fs'
import { setImmediate } from 'node:timers/promises'
import { errnoOf } from '../core/errors.ts'
import { atBytes, inside, openDirectory, type PinnedDir, toIdentity } from './pin.ts'

/** What a listing of one tree may cost; an agent can make trees without end. */
const MAX_ENTRIES = 200_000
const MAX_DEPTH = 200
const ENTRIES_A_TURN = 256
const BLOCK_BYTES = 512n

export interface TreeSize {
  readonly sizeBytes: number
  /** false: a limit was met, or a part may not be read; it is at least that much. */
  readonly complete: boolean
}

interface Walk {
  bytes: bigint
  entries: number
  complete: boolean
  /** Files with several names count once. */
  readonly linked: Set<string>
}

/** A tree may change while it is walked: what is gone takes no room. */
const GONE = ['ENOENT', 'ENOTDIR', 'ELOOP']
/** Its owner may have closed a part of it. */
const CLOSED = 'EACCES'

function orUndefined<T>(walk: Walk, open: () => T): T | undefined {
  try {
    return open()
  } catch (error) {
    const errno = errnoOf(error) ?? ''
    if (errno === CLOSED) walk.complete = false
    else if (!GONE.includes(errno)) throw error
    return undefined
  }
}

/** Allocated bytes, so that a sparse file counts what it costs. */
function count(walk: Walk, stat: BigIntStats): void {
  walk.entries += 1
  const identity = stat.nlink > 1n && !stat.isDirectory() ? toIdentity(stat) : undefined
  if (identity !== undefined && walk.linked.has(identity)) return
  if (identity !== undefined) walk.linked.add(identity)
  walk.bytes += stat.blocks * BLOCK_BYTES
}

async function enter(walk: Walk, dir: { readonly fd: number }, name: Buffer, depth: number): Promise<void> {
  if (depth >= MAX_DEPTH) {
    walk.complete = false
    return
  }
  const fd = orUndefined(walk, () => openDirectory(atBytes(dir, name)))
  if (fd === undefined) return
  try {
    await walkDirectory(walk, { fd }, depth)
  } finally {
    closeSync(fd)
  }
}

async function walkEntries(walk: Walk, dir: { readonly fd: number }, listing: Dir, depth: number): Promise<void> {
  for (let entry = listing.readSync(); entry !== null; entry = listing.readSync()) {
    if (walk.entries >= MAX_ENTRIES) {
      walk.complete = false
      return
    }
    const name = entry.name as unknown as Buffer // encoding: 'buffer', which the types do not know
    const stat = orUndefined(walk, () => lstatSync(atBytes(dir, name), { bigint: true }))
    if (stat === undefined) continue
    count(walk, stat)
    if (walk.entries % ENTRIES_A_TURN === 0) await setImmediate()
    if (stat.isDirectory()) await enter(walk, dir, name, depth + 1)
  }
}

async function walkDirectory(walk: Walk, dir: { readonly fd: number }, depth: number): Promise<void> {
  const listing = orUndefined(walk, () => opendirSync(inside(dir), { encoding: 'buffer' as BufferEncoding }))
  if (listing === undefined) return
  try {
    await walkEntries(walk, dir, listing, depth)
  } finally {
    listing.closeSync()
  }
}

/** What a tree takes on disk. Follows no link, copes with names of any bytes, ends within its limits. */
export async function measureTree(dir: PinnedDir): Promise<TreeSize> {
  const walk: Walk = { bytes: 0n, entries: 0, complete: true, linked: new Set() }
  await walkDirectory(walk, dir, 0)
  return { sizeBytes: Number(walk.bytes), complete: walk.complete }
}
