import { chmodSync, lstatSync, mkdirSync, realpathSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { AppError, errnoOf, messageOf } from '../core/errors.ts'

export interface DataRootPaths {
  readonly root: string
  readonly busHost: string
  readonly lock: string
  readonly hostLog: string
  readonly sockets: Readonly<Record<'bus' | 'launch' | 'git' | 'control', string>>
}

const PRIVATE = 0o700

function makePrivate(path: string): void {
  try {
    mkdirSync(path, { recursive: true, mode: PRIVATE })
  } catch (error) {
    throw new AppError('data-root-unsafe', `${path} cannot be made: ${messageOf(error)}`, { cause: error })
  }
}

/** A directory of ours that nobody else may enter; made when absent. Throws `data-root-unsafe`, naming what is wrong. */
function assertPrivate(path: string, uid: number): void {
  const stat = lstatSync(path)
  const refuse = (what: string, hint: string): never => {
    throw new AppError('data-root-unsafe', `${path} ${what}`, { hint })
  }
  if (!stat.isDirectory()) refuse('is not a directory', 'choose another dataRoot')
  if (stat.uid !== uid) refuse(`belongs to uid ${String(stat.uid)}, not to uid ${String(uid)}`, 'choose another dataRoot, or: mosaic doctor store')
  if ((stat.mode & 0o777) !== PRIVATE) refuse(`has mode ${(stat.mode & 0o777).toString(8)}, not 700`, `chmod 700 ${path}`)
}

/** Is what is there what a host would take? Throws `data-root-unsafe`. */
export const assertDataRoot = (path: string): void => assertPrivate(realpathSync(path), process.getuid?.() ?? -1)

/** The places in a data root, by name only. */
export function toDataRootPaths(root: string): DataRootPaths {
  const busHost = join(root, 'bus-host')
  const socket = (name: string): string => join(busHost, `${name}.sock`)
  return {
    root,
    busHost,
    lock: join(busHost, 'host.lock'),
    hostLog: join(busHost, 'host.log'),
    sockets: { bus: socket('bus'), launch: socket('launch'), git: socket('git'), control: socket('control') },
  }
}

/** Makes or checks the data root and bus-host/. A link to it is resolved once, here. Throws `data-root-unsafe`. */
export function openDataRoot(configured: string): DataRootPaths {
  const uid = process.getuid?.() ?? -1
  try {
    statSync(configured)
  } catch (error) {
    if (errnoOf(error) !== 'ENOENT') throw new AppError('data-root-unsafe', `${configured} cannot be read: ${messageOf(error)}`, { cause: error })
    makePrivate(configured)
    chmodSync(configured, PRIVATE)
  }
  const paths = toDataRootPaths(realpathSync(configured))
  assertPrivate(paths.root, uid)
  makePrivate(paths.busHost)
  assertPrivate(paths.busHost, uid)
  return paths
}
