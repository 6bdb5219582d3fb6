import {
  closeSync,
  constants,
  fstatSync,
  fsyncSync,
  lstatSync,
  opendirSync,
  openSync,
  readdirSync,
  readSync,
  renameSync,
  type Stats,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { errnoOf, messageOf } from '../core/errors.ts'
import { at, inside, type PinnedDir } from './pin.ts'

const { O_APPEND, O_CREAT, O_EXCL, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_TRUNC, O_WRONLY } = constants
const FILE_MODE = 0o600

type Missing = { readonly kind: 'absent' } | { readonly kind: 'unsafe'; readonly why: string }
export type FileOpened = { readonly kind: 'open'; readonly fd: number; readonly sizeBytes: number } | Missing
export type FileRead = { readonly kind: 'read'; readonly bytes: Buffer } | Missing

/** What stands where a plain file with one name should be: null when it is one. */
export function notPlain(stat: Pick<Stats, 'isFile' | 'isDirectory' | 'isFIFO' | 'isSymbolicLink'> & { readonly nlink: number | bigint }): string | null {
  if (stat.isDirectory()) return 'is a directory'
  if (stat.isFIFO()) return 'is a FIFO'
  if (stat.isSymbolicLink()) return 'is a link'
  if (!stat.isFile()) return 'is no plain file'
  return stat.nlink > 1 ? 'is a hard link' : null
}

/** Why opening something that should be a plain file failed. open(2): ELOOP = a link, EISDIR = a directory, ENXIO = a socket */
export function whyUnopened(error: unknown): string {
  switch (errnoOf(error)) {
    case 'ELOOP':
      return 'is a link'
    case 'EISDIR':
      return 'is a directory'
    case 'ENXIO':
      return 'is no plain file'
    default:
      return `cannot be opened: ${errnoOf(error) ?? messageOf(error)}`
  }
}

/** Opens for reading what others may have put there: follows no link, waits for no FIFO, takes only a plain file with one name. */
export function openPlain(dir: PinnedDir, name: string): FileOpened {
  let fd: number
  try {
    fd = openSync(at(dir, name), O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
  } catch (error) {
    return errnoOf(error) === 'ENOENT' ? { kind: 'absent' } : { kind: 'unsafe', why: whyUnopened(error) }
  }
  const stat = fstatSync(fd)
  const why = notPlain(stat)
  if (why === null) return { kind: 'open', fd, sizeBytes: stat.size }
  closeSync(fd)
  return { kind: 'unsafe', why }
}

function readUpTo(fd: number, limitBytes: number): Buffer {
  const buffer = Buffer.alloc(limitBytes)
  let length = 0
  for (let got = 1; got > 0 && length < limitBytes; length += got) got = readSync(fd, buffer, length, limitBytes - length, length)
  return buffer.subarray(0, length)
}

/** The bytes of a plain file with one name; one over the limit, or one that cannot be read, is unsafe. */
export function readPlain(dir: PinnedDir, name: string, limitBytes: number): FileRead {
  const opened = openPlain(dir, name)
  if (opened.kind !== 'open') return opened
  try {
    const tooBig = { kind: 'unsafe', why: `is over ${String(limitBytes / 1024)} KiB` } as const
    if (opened.sizeBytes > limitBytes) return tooBig
    const bytes = readUpTo(opened.fd, limitBytes + 1) // one more than allowed: it may have grown
    return bytes.length > limitBytes ? tooBig : { kind: 'read', bytes }
  } catch (error) {
    return { kind: 'unsafe', why: `cannot be read: ${messageOf(error)}` }
  } finally {
    closeSync(opened.fd)
  }
}

/** Removes one entry that is no directory; absent is no error. */
export function unlinkIfThere(dir: Pick<PinnedDir, 'fd'>, name: string): void {
  try {
    unlinkSync(at(dir, name))
  } catch (error) {
    if (errnoOf(error) !== 'ENOENT') throw error
  }
}

/** Writes a file that must not be there yet. */
export function writeNew(
  dir: Pick<PinnedDir, 'fd'>,
  name: string,
  data: string | Buffer,
  options: { readonly mode?: number; readonly sync?: boolean } = {},
): void {
  const fd = openSync(at(dir, name), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, options.mode ?? FILE_MODE)
  try {
    writeFileSync(fd, data)
    if (options.sync === true) fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
}

/** Replaces a file as one step that a crash cannot halve: `NAME.new`, synced, renamed, directory synced. */
export function writeDurably(dir: PinnedDir, name: string, data: string | Buffer): void {
  const temporary = `${name}.new`
  unlinkIfThere(dir, temporary)
  try {
    writeNew(dir, temporary, data, { sync: true })
    renameSync(at(dir, temporary), at(dir, name))
  } catch (error) {
    unlinkIfThere(dir, temporary)
    throw error
  }
  fsyncSync(dir.fd)
}

/** Writes a file of ours anew without giving it another inode: somebody has it bound. */
export function rewrite(dir: PinnedDir, name: string, data: string): void {
  const fd = openSync(at(dir, name), O_WRONLY | O_TRUNC | O_NOFOLLOW)
  try {
    writeFileSync(fd, data)
  } finally {
    closeSync(fd)
  }
}

/** Opens a file for appending, made 0600 when absent; throws unless it is a plain file with one name. */
export function openAppend(dir: PinnedDir, name: string): number {
  const fd = openSync(at(dir, name), O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK, FILE_MODE)
  const why = notPlain(fstatSync(fd))
  if (why === null) return fd
  closeSync(fd)
  throw new Error(`${name} ${why}`)
}

/** The names in a directory, as bytes: a name need not be UTF-8. */
export const listNames = (dir: Pick<PinnedDir, 'fd'>): readonly Buffer[] => readdirSync(inside(dir), { encoding: 'buffer' })

/** Does a directory hold a name that is none of these? Looks no further than the first: an agent may have left any number. */
export function holdsOther(dir: Pick<PinnedDir, 'fd'>, names: readonly string[]): boolean {
  const entries = opendirSync(inside(dir), { encoding: 'latin1' })
  try {
    for (let entry = entries.readSync(); entry !== null; entry = entries.readSync()) if (!names.includes(entry.name)) return true
    return false
  } finally {
    entries.closeSync()
  }
}

/** Is this entry a link? Asked without following it. */
export const isLink = (dir: PinnedDir, name: string): boolean => lstatSync(at(dir, name), { throwIfNoEntry: false })?.isSymbolicLink() === true
