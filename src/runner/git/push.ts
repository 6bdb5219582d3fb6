import { randomBytes } from 'node:crypto'
import { type FileHandle, open, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { AppError } from '../../core/errors.ts'
import { exchange, type GitDoor } from './exchange.ts'
import { type Git, type Lookup, wordsOf } from './local.ts'

export interface PushDeps {
  readonly git: Git
  readonly lookup: Lookup
  readonly door: GitDoor | null
  /** Gets the bundle: its size is told before its bytes. */
  readonly temporaryDir: string
}

export interface Push {
  readonly project: string
  readonly task: string
  /** The commit's object id. */
  readonly commit: string
  /** What the host has, as far as is known. */
  readonly tips: Tips
  readonly progress?: boolean
}

/** Commits by the names of their branches. */
export type Tips = ReadonlyMap<string, string>

export interface Pushed {
  readonly push: string
  readonly ref: string
  readonly commit: string
}

export const MAIN = 'refs/heads/main'
export const BRANCH = 'refs/heads/'

/** The tips that the host shows of a project, without their objects. Throws what it refuses. */
export async function listTips(door: GitDoor | null, project: string): Promise<Tips> {
  const { reply, close } = await exchange(door, { op: 'list', project })
  close()
  return new Map(Object.entries(reply.tips as Readonly<Record<string, string>>))
}

/** The object id of what a revision names. Throws `bundle-invalid` unless it is a commit: a tag is none. */
export async function resolveCommit(lookup: Lookup, revision: string): Promise<string> {
  const [found] = await lookup.find([revision])
  if (found === undefined) throw new AppError('bundle-invalid', `there is no commit ${revision}`)
  if (found.type !== 'commit') throw new AppError('bundle-invalid', `${revision} is no commit`)
  return found.oid
}

/** Fewer than git's standard output is kept of (local.ts), so that none is cut off. */
const MAX_COMMITS = 10_000

/**
 * What the push builds on: of all that the host has, only the commits where the new ones begin, since the host copies the history
 * of each for its checks. All of it where that cannot be told, or is no more than main and the task's own work.
 */
async function basesOf({ git, lookup }: PushDeps, { commit, task, tips }: Push): Promise<string[]> {
  const found = await lookup.find([...new Set(tips.values())])
  const present = found.flatMap((object) => object?.oid ?? [])
  const least = [tips.get(MAIN), tips.get(BRANCH + task)]
  if (present.every((oid) => least.includes(oid))) return present
  const input = [commit, ...present.map((oid) => `^${oid}`), ''].join('\n')
  const listed = await git(['rev-list', '--boundary', `--max-count=${String(MAX_COMMITS)}`, '--stdin'], { input })
  const lines = listed.stdout.split('\n').filter((line) => line !== '')
  if (listed.status !== 0 || lines.filter((line) => !line.startsWith('-')).length >= MAX_COMMITS) return present
  // nothing new: the host has the commit itself
  if (lines.length === 0) return [commit]
  return lines.flatMap((line) => (line.startsWith('-') ? [line.slice(1)] : []))
}

/** gitformat-bundle(5); a `git bundle create` needs a ref for its tip, and the name is ignored anyway. */
const toHeader = (commit: string, bases: readonly string[]): string =>
  ['# v2 git bundle', ...bases.map((oid) => `-${oid}`), `${commit} refs/heads/pushed`, '', ''].join('\n')

/** Writes the bundle of a commit without what the bases have; its size. */
async function writeBundle({ git }: PushDeps, file: FileHandle, { commit, progress = false }: Push, bases: readonly string[]): Promise<number> {
  await file.writeFile(toHeader(commit, bases))
  const input = [commit, ...bases.map((oid) => `^${oid}`), ''].join('\n')
  const shown = progress ? ['--progress', '--all-progress-implied'] : ['-q']
  const packed = await git(['pack-objects', '--revs', '--stdout', '--thin', '--delta-base-offset', ...shown], { input, output: file.fd, progress })
  if (packed.status !== 0) throw new AppError('bundle-invalid', `packing ${commit} failed: ${wordsOf(packed)}`)
  return (await file.stat()).size
}

/** A file without a name, gone with its handle. */
async function openNameless(dir: string): Promise<FileHandle> {
  const path = join(dir, `mosaic-push-${randomBytes(8).toString('hex')}`)
  const file = await open(path, 'wx+', 0o600)
  await unlink(path)
  return file
}

/** Pushes one commit to a task. Throws what the host refuses. */
export async function pushCommit(deps: PushDeps, push: Push): Promise<Pushed> {
  const { project, task, commit } = push
  const bases = await basesOf(deps, push)
  const file = await openNameless(deps.temporaryDir)
  try {
    const size = await writeBundle(deps, file, push, bases)
    const { reply, close } = await exchange(deps.door, { op: 'push', project, task, commit, size }, file)
    close()
    return { push: String(reply.push), ref: String(reply.ref), commit }
  } finally {
    await file.close()
  }
}
