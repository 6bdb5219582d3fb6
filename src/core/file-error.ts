import { dirname } from 'node:path'
import { AppError, errnoOf, messageOf } from './errors.ts'

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file or directory',
  ENOTDIR: 'something on the way to it is no directory',
  EISDIR: 'it is a directory',
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  EROFS: 'the file system is read-only',
  ENAMETOOLONG: 'the name is too long',
  ELOOP: 'it is a link that leads nowhere, or may not be followed',
  ENOTEMPTY: 'it is not empty',
  EEXIST: 'it is there already',
  EBUSY: 'it is in use',
  ETXTBSY: 'it is in use',
  EMFILE: 'too many files are open',
  ENFILE: 'too many files are open',
  EFBIG: 'the file system takes no file of that size',
  EIO: 'the disk fails',
}

const pathOf = (error: unknown): string | undefined =>
  typeof error === 'object' && error !== null && 'path' in error && typeof error.path === 'string' ? error.path : undefined

/** write(2) fails by descriptor, and then nobody knows the path any more. */
const diskFull = (path: string | undefined, cause: unknown): AppError =>
  path === undefined
    ? new AppError('disk-full', `no space is left: ${messageOf(cause)}`, { hint: 'make room: df -h shows which disk is full', cause })
    : new AppError('disk-full', `${path} cannot be written: the disk is full`, { hint: `make room: df -h ${dirname(path)}`, cause })

/**
 * What the kernel said about a file as a refusal: `disk-full`, else `file-unusable`, with the path and the next step. Anything else as it is:
 * but for a full disk, an error without a path, unless it is given, is about no file. errno(3)
 */
export function toFileError(error: unknown, path = pathOf(error)): unknown {
  const errno = errnoOf(error) ?? ''
  if (error instanceof AppError) return error
  if (errno === 'ENOSPC' || errno === 'EDQUOT') return diskFull(path, error)
  if (path === undefined) return error
  if (!/^E[A-Z0-9]+$/.test(errno)) return error
  const hint = errno === 'EISDIR' ? 'name a file' : `look at it: ls -ld ${errno === 'ENOENT' || errno === 'ENOTDIR' ? dirname(path) : path}`
  return new AppError('file-unusable', `${path} cannot be used: ${REASONS[errno] ?? messageOf(error)}`, { hint, cause: error })
}
