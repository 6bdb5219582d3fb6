import { chmodSync, copyFileSync, existsSync, readFileSync, renameSync } from 'node:fs'
import { basename, join } from 'node:path'

/** As all else in the data root; a copy has its original's. */
const MODE = 0o600

/**
 * Copies a program of ours beside the sockets, and returns where: a host that lives through an upgrade goes on with the
 * helper that it was built with. The caller holds the host lock.
 */
export function keepOwnCopy(program: string, busHost: string): string {
  const copy = join(busHost, basename(program))
  // a host must be able to start on a full disk
  if (existsSync(copy) && readFileSync(copy).equals(readFileSync(program))) {
    chmodSync(copy, MODE)
    return copy
  }
  copyFileSync(program, `${copy}.new`)
  chmodSync(`${copy}.new`, MODE)
  renameSync(`${copy}.new`, copy)
  return copy
}
