import { accessSync, closeSync, constants, fchmodSync, fstatSync, lstatSync, openSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { nameOfUser } from '../core/account.ts'
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

const ELSEWHERE = 'choose another data root: dataRoot in system.yaml, MOSAIC_DATA or --data-root'
const refused = (message: string, remedy: string): Finding => fail({ name: 'data root', code: 'data-root-unsafe', message, remedy })

interface Owner {
  readonly uid: number
  readonly name: string
}

/** What to do about a directory of somebody else's. Mosaic never runs as root, so what is root's has to become ours. Pure. */
export function remedyForOwner(path: string, { owner, us }: { readonly owner: Owner; readonly us: Owner }): string {
  if (us.uid === 0) return `mosaic doctor --user ${owner.name}`
  const first = owner.uid === 0 ? `sudo chown -R ${us.name}: ${path}` : `run mosaic as ${owner.name}`
  return `${first}, or ${ELSEWHERE}`
}

const toOwner = (uid: number): Owner => ({ uid, name: nameOfUser(uid) })

function judgeOwner(path: string, uid: number, us: number): Finding | null {
  if (uid === us) return null
  return refused(
    `${path} is ${nameOfUser(uid)}'s, and the bus host would run as ${nameOfUser(us)}`,
    remedyForOwner(path, { owner: toOwner(uid), us: toOwner(us) }),
  )
}

function judgeWritable(path: string): Finding | null {
  try {
    accessSync(path, constants.W_OK)
    return null
  } catch (error) {
    return refused(
      `${path} cannot be written: ${messageOf(error)}`,
      errnoOf(error) === 'EROFS' ? `mount its file system read-write, or ${ELSEWHERE}` : ELSEWHERE,
    )
  }
}

/** A directory that nobody but us may enter; null when it is not there. */
function judgeDirectory(path: string, uid: number): Finding | null {
  const stat = lstatSync(path, { throwIfNoEntry: false })
  if (stat === undefined) return null
  if (!stat.isDirectory()) return refused(`${path} is not a directory`, ELSEWHERE)
  const foreign = judgeOwner(path, stat.uid, uid)
  if (foreign !== null) return foreign
  const mode = stat.mode & 0o777
  if (mode === PRIVATE) return judgeWritable(path) ?? ok('data root', path)
  const fix = (): Promise<string> => Promise.resolve().then(() => makePrivate(path, uid))
  return { ...refused(`${path} has mode ${mode.toString(8)}, not 700`, `chmod 700 ${path} (mosaic doctor store --fix does it)`), fix }
}

function isReachable(path: string): Finding | null {
  try {
    statSync(path)
    return null
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return ok('data root', `${path} is not made yet: the first mosaic bus start makes it`)
    return refused(`${path} cannot be read: ${messageOf(error)}`, ELSEWHERE)
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

/** One `ok`, or what is wrong with it. */
export function checkDataRoot({ root, uid }: Pick<Patient, 'root' | 'uid'>): Finding[] {
  const unreachable = isReachable(root)
  if (unreachable !== null) return [unreachable]
  const own = judgeDirectory(root, uid)
  const busHost = own?.state === 'ok' ? judgeDirectory(join(root, 'bus-host'), uid) : null
  return [own, busHost].filter((finding) => finding !== null).filter((finding, at) => at === 0 || finding.state !== 'ok')
}

/** May we look into it? Not into one that is somebody else's or closed, whose own check says so. */
export const isOpen = (patient: Pick<Patient, 'root' | 'uid'>): boolean => {
  try {
    accessSync(patient.root, constants.R_OK | constants.X_OK)
    return lstatSync(patient.root).uid === patient.uid
  } catch {
    return false
  }
}
