import { copyFileSync, existsSync, readFileSync, renameSync } from 'node:fs'
import { basename, join } from 'node:path'

/**
 * Copies a program of ours beside the sockets, and returns where: a host that lives through an upgrade goes on with the
 * helper that it was built with. The caller holds the host lock.
 */
export function keepOwnCopy(program: string, busHost: string): string {
  const copy = join(busHost, basename(program))
  // a host must be able to start on a full disk
  if (existsSync(copy) && readFileSync(copy).equals(readFileSync(program))) return copy
  copyFileSync(program, `${copy}.new`)
  renameSync(`${copy}.new`, copy)
  return copy
}
