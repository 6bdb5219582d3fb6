import { spawnSync } from 'node:child_process'
import { chmodSync, closeSync, fsyncSync, mkdirSync, openSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import type { Account } from '../core/account.ts'
import { AppError, errnoOf } from '../core/errors.ts'
import type { UnitPlaces } from './places.ts'
import type { Systemctl } from './systemctl.ts'
import { CREDENTIALS_TEMPLATE, MARKER } from './unit.ts'

export interface InstallRequest {
  readonly places: UnitPlaces
  readonly text: string
  readonly account: Account
  readonly dataRoot: string
}

export interface Installed {
  readonly unit: string
  readonly path: string
  readonly credentials: string
  /** false: it was there, and stays as it is. */
  readonly credentialsMade: boolean
  /** Others could read it, and can no longer. */
  readonly credentialsClosed: boolean
}

export function readIfThere(path: string): string | null {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return null
    throw error
  }
}

function assertOurs({ places, account }: Pick<InstallRequest, 'places' | 'account'>): void {
  const before = readIfThere(places.unit)
  if (before === null) return
  const user = /^User=(.*)$/m.exec(before)?.[1]
  if (before.startsWith(MARKER) && (user === undefined || user === account.name)) return
  const whose = before.startsWith(MARKER) ? `is the bus host of ${user ?? ''}` : 'is not from mosaic'
  throw new AppError('config-exists', `${places.unit} is there already and ${whose}`, { hint: `look at it, then: rm ${places.unit}` })
}

/** A whole file or none, on disk when this returns. */
function writeWhole(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true })
  const temporary = `${path}.new`
  rmSync(temporary, { force: true })
  const fd = openSync(temporary, 'wx', 0o644)
  try {
    writeFileSync(fd, text)
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
  renameSync(temporary, path)
}

function makeCredentials(path: string): boolean {
  mkdirSync(dirname(path), { recursive: true })
  try {
    writeFileSync(path, CREDENTIALS_TEMPLATE, { flag: 'wx', mode: 0o600 })
    return true
  } catch (error) {
    if (errnoOf(error) === 'EEXIST') return false
    throw error
  }
}

/** Takes a file that was there away from others; false: there was no need, or it is not ours to change, which doctor then says. */
function closeToOthers(path: string): boolean {
  try {
    if ((statSync(path).mode & 0o077) === 0) return false
    chmodSync(path, 0o600)
    return true
  } catch (error) {
    if (errnoOf(error) === 'EPERM') return false
    throw error
  }
}

/** The unit may write to the data root alone, so it cannot make it. As root, the founder's own hands make it: nothing of root's goes by a path of theirs. */
function makeDataRoot(dataRoot: string, { uid, gid, home }: Account): void {
  const ids = process.getuid?.() === 0 ? { uid, gid } : {}
  const made = spawnSync('mkdir', ['-p', '-m', '700', '--', dataRoot], { ...ids, cwd: '/', env: { PATH: '/usr/bin:/bin', HOME: home }, encoding: 'utf8' })
  if (made.status !== 0) throw new AppError('data-root-unsafe', `${dataRoot} cannot be made: ${made.stderr.trim()}`)
}

/** Writes the unit and, once, the file for credentials; enables it and starts nothing. Throws `config-exists` for a unit of somebody else. */
export function installUnit(systemctl: Systemctl, request: InstallRequest): Installed {
  const { places, text, account, dataRoot } = request
  assertOurs(request)
  // a manager that does not answer is found out before anything is written
  systemctl.show(places.name)
  makeDataRoot(dataRoot, account)
  const credentialsMade = makeCredentials(places.credentials)
  const credentialsClosed = closeToOthers(places.credentials)
  writeWhole(places.unit, text)
  systemctl.run('daemon-reload')
  systemctl.run('enable', places.name)
  return { unit: places.name, path: places.unit, credentials: places.credentials, credentialsMade, credentialsClosed }
}

type UninstallRequest = Pick<InstallRequest, 'places' | 'account'>

/** Throws `not-running` when there is no unit, `config-exists` when it is somebody else's. */
export function assertUninstallable(request: UninstallRequest): void {
  const { unit } = request.places
  if (readIfThere(unit) === null) throw new AppError('not-running', `${unit} is not there`, { hint: 'mosaic service status' })
  assertOurs(request)
}

/** Stops and removes the unit; credentials and the data root stay. Throws what `assertUninstallable` does. */
export function uninstallUnit(systemctl: Systemctl, request: UninstallRequest): void {
  const { places } = request
  assertUninstallable(request)
  systemctl.run('disable', '--now', places.name)
  rmSync(places.unit)
  systemctl.run('daemon-reload')
}
