import { closeSync, constants, fchmodSync, fstatSync, lstatSync, openSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { findAccount } from '../core/account.ts'
import { errnoOf, messageOf } from '../core/errors.ts'
import { fail, type Finding, ok } from './check.ts'
import type { Patient } from './patient.ts'

const PRIVATE = 0o700

/** Makes a directory of ours private, through a descriptor: what is checked is what is changed. */
function makePrivate(path: string, uid: number): string {
  const fd = openSync(path, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW)
  try {
    if (fstatSync(fd).uid !== uid) throw new Error(`${path} is not ours`)
    fchmodSync(fd, PRIVATE)
    return `chmod 700 ${path}`
  } finally {
    closeSync(fd)
  }
}

function nameOf(uid: number): string {
  try {
    return findAccount(String(uid)).name
  } catch {
    return `uid ${String(uid)}`
  }
}

/** A directory that nobody but us may enter; null when it is not there. */
function judgeDirectory(path: string, uid: number): Finding | null {
  const stat = lstatSync(path, { throwIfNoEntry: false })
  if (stat === undefined) return null
  const refused = (message: string, remedy: string): Finding => fail({ name: 'data root', code: 'data-root-unsafe', message, remedy })
  const elsewhere = 'choose another data root: dataRoot in system.yaml, MOSAIC_DATA or --data-root'
  if (!stat.isDirectory()) return refused(`${path} is not a directory`, elsewhere)
  if (stat.uid !== uid)
    return refused(`${path} is ${nameOf(stat.uid)}'s, and the bus host would run as ${nameOf(uid)}`, `run mosaic as ${nameOf(stat.uid)}, or ${elsewhere}`)
  const mode = stat.mode & 0o777
  if (mode === PRIVATE) return ok('data root', path)
  const fix = (): Promise<string> => Promise.resolve().then(() => makePrivate(path, uid))
  return { ...refused(`${path} has mode ${mode.toString(8)}, not 700`, `chmod 700 ${path} (mosaic doctor store --fix does it)`), fix }
}

function isReachable(path: string): Finding | null {
  try {
    statSync(path)
    return null
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return ok('data root', `${path} is not made yet: the first mosaic bus start makes it`)
    return fail({
      name: 'data root',
      code: 'data-root-unsafe',
      message: `${path} cannot be read: ${messageOf(error)}`,
      remedy: 'choose another data root: dataRoot in system.yaml',
    })
  }
}

/** A directory, as far as we can see: not where a file is in its place, or in that of one above it. */
export function isDirectory(path: string): boolean {
  try {
    return statSync(path).isDirectory()
  } catch {
    return false
  }
}

/** A file is in its place, or in that of a directory above it. */
export function isBehindFile(path: string): boolean {
  try {
    return !statSync(path).isDirectory()
  } catch (error) {
    return errnoOf(error) === 'ENOTDIR'
  }
}

export function checkDataRoot({ root, uid }: Patient): Finding[] {
  const unreachable = isReachable(root)
  if (unreachable !== null) return [unreachable]
  const own = judgeDirectory(root, uid)
  const busHost = own?.state === 'ok' ? judgeDirectory(join(root, 'bus-host'), uid) : null
  return [own, busHost].filter((finding) => finding !== null).filter((finding, at) => at === 0 || finding.state !== 'ok')
}
