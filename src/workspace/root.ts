import { constants } from 'node:fs'
import { lstat, open, realpath, stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { AppError, errnoOf } from '../core/errors.ts'

const POINTER_BYTES = 4096

const unreadable = (why: string): AppError => new AppError('checkout-failed', why)

/** What a launch is told when a project's root cannot be read, whatever the cause. */
export const rootUnreadable = (project: { readonly id: string; readonly root: string }, why: string): AppError =>
  new AppError('checkout-failed', `${project.id}: the root ${project.root} can't be read: ${why}`)

/** The one line of a pointer file (`.git` of a linked worktree, `commondir`, a ref); null: there is none. It may be anything: opened without blocking, read to a limit. */
export async function readSmallFile(path: string): Promise<string | null> {
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch((error: unknown) => {
    if (errnoOf(error) === 'ENOENT') return null
    throw unreadable(`${path}: ${errnoOf(error) ?? 'unreadable'}`)
  })
  if (file === null) return null
  try {
    const facts = await file.stat()
    if (!facts.isFile() || facts.size > POINTER_BYTES) throw unreadable(`${path} is no small regular file`)
    const text = await file.readFile('utf8')
    return text.replace(/[\r\n]+$/, '')
  } finally {
    await file.close()
  }
}

async function gitDirOf(root: string): Promise<string> {
  const path = join(root, '.git')
  const facts = await lstat(path).catch((error: unknown) => {
    if (errnoOf(error) === 'ENOENT') return null
    throw unreadable(`${path}: ${errnoOf(error) ?? 'unreadable'}`)
  })
  if (facts === null) {
    const bare = await lstat(join(root, 'objects')).then(
      (found) => found.isDirectory(),
      () => false,
    )
    if (bare) return root
    throw unreadable('no git repository there (.git is missing)')
  }
  if (facts.isDirectory() || facts.isSymbolicLink()) return path
  const pointer = /^gitdir: (.+)$/.exec((await readSmallFile(path)) ?? '')
  if (pointer?.[1] === undefined) throw unreadable(`${path} is no git directory and names none`)
  return resolve(root, pointer[1])
}

/**
 * The common git directory of a project's root, resolved through a linked worktree by reading two pointer files: no git runs
 * in the host (gitrepository-layout(5)). Throws `checkout-failed` in words that follow "the root PATH can't be read: ".
 */
export async function resolveCommonDir(root: string): Promise<string> {
  const gitDir = await gitDirOf(root)
  const pointer = await readSmallFile(join(gitDir, 'commondir'))
  const common = pointer === null ? gitDir : resolve(gitDir, pointer)
  try {
    const real = await realpath(common)
    if ((await stat(real)).isDirectory()) return real
  } catch (error) {
    throw unreadable(`${common}: ${errnoOf(error) ?? 'unreadable'}`)
  }
  throw unreadable(`${common} is no directory`)
}
