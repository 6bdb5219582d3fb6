import { constants } from 'node:fs'
import { lstat, open, realpath, stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { AppError, errnoOf } from '../core/errors.ts'

const POINTER_BYTES = 4096
const PACKED_REFS_BYTES = 1024 * 1024
const OID = /^[0-9a-f]{40}$/

const unreadable = (why: string): AppError => new AppError('checkout-failed', why)

/** What a launch is told when a project's root cannot be read, whatever the cause. */
export const rootUnreadable = (project: { readonly id: string; readonly root: string }, why: string): AppError =>
  new AppError('checkout-failed', `${project.id}: the root ${project.root} can't be read: ${why}`)

/** The text of a small file, without its last newline. It may be anything: opened without blocking, read to a limit. */
async function readSmall(path: string, limitBytes = POINTER_BYTES): Promise<string | null> {
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch((error: unknown) => {
    if (errnoOf(error) === 'ENOENT') return null
    throw unreadable(`${path}: ${errnoOf(error) ?? 'unreadable'}`)
  })
  if (file === null) return null
  try {
    const facts = await file.stat()
    if (!facts.isFile() || facts.size > limitBytes) throw unreadable(`${path} is no small regular file`)
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
  const pointer = /^gitdir: (.+)$/.exec((await readSmall(path)) ?? '')
  if (pointer?.[1] === undefined) throw unreadable(`${path} is no git directory and names none`)
  return resolve(root, pointer[1])
}

/**
 * The common git directory of a project's root, resolved through a linked worktree by reading two pointer files: no git runs
 * in the host (gitrepository-layout(5)). Throws `checkout-failed` in words that follow "the root PATH can't be read: ".
 */
export async function resolveCommonDir(root: string): Promise<string> {
  const gitDir = await gitDirOf(root)
  const pointer = await readSmall(join(gitDir, 'commondir'))
  const common = pointer === null ? gitDir : resolve(gitDir, pointer)
  try {
    const real = await realpath(common)
    if ((await stat(real)).isDirectory()) return real
  } catch (error) {
    throw unreadable(`${common}: ${errnoOf(error) ?? 'unreadable'}`)
  }
  throw unreadable(`${common} is no directory`)
}

/**
 * Where a branch of the root plainly is, read from its files (gitrepository-layout(5)), which takes no sandbox; null: git must be asked.
 * Resolved like every path of the root, so within a deadline.
 */
export async function plainTipOf(commonDir: string, branch: string): Promise<string | null> {
  const ref = `refs/heads/${branch}`
  try {
    const loose = await readSmall(join(commonDir, ref))
    if (loose !== null) return OID.test(loose) ? loose : null
    const packed = (await readSmall(join(commonDir, 'packed-refs'), PACKED_REFS_BYTES)) ?? ''
    const line =
      packed
        .split('\n')
        .find((text) => text.slice(41) === ref)
        ?.slice(0, 40) ?? ''
    return OID.test(line) ? line : null
  } catch {
    return null
  }
}
