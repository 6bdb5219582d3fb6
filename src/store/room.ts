import * as fs from 'node:fs'
import { errnoOf } from '../core/errors.ts'

const PROBE_BYTES = 64 * 1024

/** ENOSPC: the disk; EDQUOT: the account's share of it; EFBIG: a limit on the size of one file. */
const FULL: readonly string[] = ['ENOSPC', 'EDQUOT', 'EFBIG']

/** Bytes of the longest file of the store: a limit on sizes is met there first. */
const longest = (db: string): number => Math.max(...[db, `${db}-wal`].map((path) => fs.lstatSync(path, { throwIfNoEntry: false })?.size ?? 0))

/** Writes beside the database: some space at the front, and a little as far out as its files reach. */
function write(path: string, end: number): void {
  const fd = fs.openSync(path, 'w', 0o600)
  try {
    const block = Buffer.alloc(PROBE_BYTES)
    fs.writeSync(fd, block, 0, PROBE_BYTES, 0)
    fs.writeSync(fd, block, 0, 1, end)
    // a share that is kept elsewhere (NFS) is judged when the bytes arrive
    fs.fsyncSync(fd)
  } finally {
    fs.closeSync(fd)
  }
}

/** Can the disk of the database still be written? False only when it is full: what else fails is told by who met it. */
export function hasRoom(db: string, probe: typeof write = write): boolean {
  const path = `${db}.room`
  try {
    probe(path, longest(db))
    return true
  } catch (error) {
    return !FULL.includes(errnoOf(error) ?? '')
  } finally {
    fs.rmSync(path, { force: true })
  }
}
