import * as fs from 'node:fs'
import { join } from 'node:path'
import type { ErrorCode } from '../core/codes.ts'
import { AppError, errnoOf } from '../core/errors.ts'
import { APPLICATION_ID, type Header, HEADER_BYTES, parseHeader, type ReadAt, walHeader } from './header.ts'

export interface StoreFiles {
  readonly db: string
  readonly wal: string
  readonly shm: string
  /** Tells a store that is new from one that was lost. */
  readonly marker: string
}

export function storeFiles(dataRoot: string): StoreFiles {
  const db = join(dataRoot, 'mosaic.db')
  return { db, wal: `${db}-wal`, shm: `${db}-shm`, marker: `${db}.created` }
}

/** A refusal to open: nothing was changed, and the files to move aside together are named. */
export function refuseStore(files: StoreFiles, code: ErrorCode & `${'store' | 'trail'}-${string}`, why: string, cause?: unknown): AppError {
  const all = [files.db, files.wal, files.shm, files.marker].join(' ')
  return new AppError(code, `${files.db} is unreadable (${why.replace(/\s+/g, ' ')}): move the files aside: ${all}`, {
    hint: `mkdir aside && mv ${files.db}* aside/`,
    ...(cause === undefined ? {} : { cause }),
  })
}

type Found = { readonly kind: 'absent' } | { readonly kind: 'file'; readonly sizeBytes: number; readonly first: Buffer; readonly wal: Header | null }

/** Opens a regular file of one name for reading, following nothing, and hands its reader on. */
function withFile<T>(path: string, use: (sizeBytes: number, readAt: ReadAt) => T): T | null {
  let fd: number
  try {
    fd = fs.openSync(path, fs.constants.O_RDONLY | fs.constants.O_NOFOLLOW | fs.constants.O_NONBLOCK)
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return null
    throw error
  }
  try {
    const stat = fs.fstatSync(fd)
    if (!stat.isFile() || stat.nlink !== 1) throw new Error('not a regular file of one name')
    return use(stat.size, (offset, length) => {
      const buffer = Buffer.alloc(length)
      return buffer.subarray(0, fs.readSync(fd, buffer, 0, length, offset))
    })
  } finally {
    fs.closeSync(fd)
  }
}

const reasonOf = (error: unknown): string => errnoOf(error) ?? (error instanceof Error ? error.message : String(error))

const isForbidden = (error: unknown): error is NodeJS.ErrnoException => ['EACCES', 'EPERM'].includes(errnoOf(error) ?? '')

/** A store that may well be whole: nothing is to be moved. */
function notOurs(error: NodeJS.ErrnoException): AppError {
  const path = error.path ?? ''
  return new AppError('store-unreadable', `${path} may not be read by this user (${reasonOf(error)})`, { hint: `chmod 600 ${path}`, cause: error })
}

function look(files: StoreFiles): Found {
  try {
    const found = withFile(files.db, (sizeBytes, readAt) => ({ sizeBytes, first: readAt(0, HEADER_BYTES) }))
    const wal = withFile(files.wal, (_size, readAt) => walHeader(readAt))
    return found === null ? { kind: 'absent' } : { kind: 'file', ...found, wal }
  } catch (error) {
    throw isForbidden(error) ? notOurs(error) : refuseStore(files, 'store-unreadable', reasonOf(error), error)
  }
}

const isThere = (path: string): boolean => fs.lstatSync(path, { throwIfNoEntry: false }) !== undefined
const sizeOf = (path: string): number => fs.lstatSync(path, { throwIfNoEntry: false })?.size ?? 0

function assertNotLost(files: StoreFiles, what: string): void {
  if (isThere(files.marker)) throw refuseStore(files, 'store-lost', `${what}, and ${files.marker} says that there was a store`)
  if (isThere(files.wal)) throw refuseStore(files, 'store-lost', `${what}, and ${files.wal} is left of one`)
}

/**
 * Judges the files with plain reads, before SQLite opens anything (opening alone can change them).
 * 'new': there is no store and there was none; 'old': one that this version may open. Else throws `store-…`.
 */
export function judgeFiles(files: StoreFiles, version: number): 'new' | 'old' {
  const found = look(files)
  if (found.kind === 'absent' || found.sizeBytes === 0) {
    assertNotLost(files, found.kind === 'absent' ? 'it is missing' : 'it is empty')
    return 'new'
  }
  const header = parseHeader(found.first)
  if (header === null) throw refuseStore(files, 'store-unreadable', 'it is no SQLite database')
  if (header.applicationId !== APPLICATION_ID) throw refuseStore(files, 'store-unreadable', "it is another program's database")
  const userVersion = Math.max(header.userVersion, found.wal?.userVersion ?? 0)
  if (userVersion > version) throw refuseStore(files, 'store-newer', `its version is ${String(userVersion)}, this program knows ${String(version)}`)
  // with a write-ahead log the file may be in the middle of a checkpoint, which SQLite goes on with
  const cut = header.pages !== null && sizeOf(files.wal) === 0 && found.sizeBytes < header.pages * header.pageBytes
  if (userVersion === 0 || cut) throw refuseStore(files, 'store-corrupt', cut ? 'it is shorter than its header says' : 'it was never finished')
  return 'old'
}
