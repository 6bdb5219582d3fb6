import { closeSync, constants, fstatSync, mkdirSync, openSync, realpathSync, rmdirSync } from 'node:fs'
import { join } from 'node:path'
import { AppError, errnoOf, messageOf } from '../core/errors.ts'

const PRIVATE = 0o700
const NAME_BYTES = 255

/** A directory held by descriptor: renaming it, or putting a link in its place, does not change what this leads to. */
export interface PinnedDir {
  readonly fd: number
  /** Where it was when it was opened; for people and for mounts, never for opening. */
  readonly path: string
  /** `dev:ino` of the descriptor. */
  readonly identity: string
  /** Did the call that opened it also make it? */
  readonly created: boolean
  /** Opens one entry of it as a directory, following no link (ENOTDIR); with `create`, makes it 0700 first. Throws system errors. */
  readonly child: (name: string, options?: { readonly create?: boolean }) => PinnedDir
  /** Idempotent. */
  readonly close: () => void
}

/** One path component: a slash or `..` would leave the pinned directory. */
export const isSegment = (name: string): boolean =>
  name !== '' && name !== '.' && name !== '..' && !name.includes('/') && !name.includes('\0') && Buffer.byteLength(name) <= NAME_BYTES

/** The path of an entry through its directory's descriptor. O_NOFOLLOW guards only the last component, so there is just one. proc(5) */
export function at(dir: Pick<PinnedDir, 'fd'>, name: string): string {
  if (!isSegment(name)) throw new Error(`not one path component: ${JSON.stringify(name)}`)
  return `/proc/self/fd/${String(dir.fd)}/${name}`
}

/** The same for a name of any bytes, as a directory listing gives it. */
export const atBytes = (dir: Pick<PinnedDir, 'fd'>, name: Buffer): Buffer => Buffer.concat([Buffer.from(`/proc/self/fd/${String(dir.fd)}/`), name])

/** The directory itself through its descriptor, to list it. */
export const inside = (dir: Pick<PinnedDir, 'fd'>): string => `/proc/self/fd/${String(dir.fd)}`

export const toIdentity = (stat: { readonly dev: bigint; readonly ino: bigint }): string => `${String(stat.dev)}:${String(stat.ino)}`

function makeDirectory(path: string): boolean {
  try {
    mkdirSync(path, { mode: PRIVATE })
    return true
  } catch (error) {
    if (errnoOf(error) === 'EEXIST') return false
    throw error
  }
}

/** Opens a directory without following a link in its last component. O_NONBLOCK: nothing that could be there makes it wait. open(2) */
export function openDirectory(path: string | Buffer): number {
  return openSync(path, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
}

function toPinned(fd: number, path: string, created: boolean): PinnedDir {
  let open = true
  const pinned: PinnedDir = {
    get fd() {
      if (!open) throw new Error(`${path} is used after it was closed`)
      return fd
    },
    path,
    identity: toIdentity(fstatSync(fd, { bigint: true })),
    created,
    child: (name, { create = false } = {}) => {
      const through = at(pinned, name)
      const made = create && makeDirectory(through)
      return toPinned(openDirectory(through), join(path, name), made)
    },
    close: () => {
      if (open) closeSync(fd)
      open = false
    },
  }
  return pinned
}

/** Pins the data root, which may be a link: resolved once, here. Throws `data-root-unsafe` unless it is a 0700 directory of ours. */
export async function pinDataRoot(path: string): Promise<PinnedDir> {
  let pinned: PinnedDir
  try {
    const real = realpathSync(path)
    pinned = toPinned(openDirectory(real), real, false)
  } catch (error) {
    throw new AppError('data-root-unsafe', `${path} cannot be opened: ${messageOf(error)}`, { cause: error })
  }
  const stat = fstatSync(pinned.fd)
  if (stat.uid === process.geteuid?.() && (stat.mode & 0o777) === PRIVATE) return Promise.resolve(pinned)
  pinned.close()
  throw new AppError('data-root-unsafe', `${path} is not a directory of ours with mode 700`, { hint: `chmod 700 ${path}` })
}

interface WalkOptions {
  readonly create?: boolean
  /** Told each directory that was made: how many components down, and which. */
  readonly made?: (depth: number, identity: string) => void
}

/** Walks down from a pinned directory, one component a call, and closes what lies between. Throws system errors. */
export function walkTo(from: PinnedDir, names: readonly string[], options: WalkOptions = {}): PinnedDir {
  let current = from
  for (const [index, name] of names.entries()) {
    try {
      const next = current.child(name, { create: options.create ?? false })
      if (next.created) options.made?.(index + 1, next.identity)
      if (current !== from) current.close()
      current = next
    } catch (error) {
      if (current !== from) current.close()
      throw error
    }
  }
  return current
}

/** Does this entry still lead to the directory of that identity? */
export function leadsTo(dir: PinnedDir, names: readonly string[], identity: string): boolean {
  try {
    const found = walkTo(dir, names)
    found.close()
    return found.identity === identity
  } catch {
    return false
  }
}

/** Removes an empty directory of ours if its name still leads to it; something in it, or gone already, is no error. */
export function removeEmpty(from: PinnedDir, names: readonly string[], identity: string): boolean {
  const last = names.at(-1)
  if (last === undefined || !leadsTo(from, names, identity)) return false
  const parent = walkTo(from, names.slice(0, -1))
  try {
    rmdirSync(at(parent, last))
    return true
  } catch (error) {
    if (['ENOTEMPTY', 'EEXIST', 'ENOENT'].includes(errnoOf(error) ?? '')) return false
    throw error
  } finally {
    if (parent !== from) parent.close()
  }
}
