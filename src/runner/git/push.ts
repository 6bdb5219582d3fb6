import { mkdtemp, open, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { AppError } from '../../core/errors.ts'
import { exchange, type GitDoor } from './exchange.ts'
import { type Git, wordsOf } from './local.ts'

export interface PushDeps {
  readonly git: Git
  readonly door: GitDoor
  /** Gets the bundle: its size is told before its bytes. */
  readonly temporaryDir: string
}

export interface Push {
  readonly project: string
  readonly task: string
  /** The commit's object id. */
  readonly commit: string
  /** Commits that the host has, as far as is known. */
  readonly tips: readonly string[]
  readonly progress?: boolean
}

export interface Pushed {
  readonly push: string
  readonly ref: string
  readonly commit: string
}

/** The object id of what a revision names. Throws `bundle-invalid` unless it is a commit: a tag is none. */
export async function resolveCommit(git: Git, revision: string): Promise<string> {
  const found = revision.includes('\n') ? null : await git(['cat-file', '--batch-check=%(objecttype) %(objectname)'], { input: `${revision}\n` })
  const [, type, commit] = /^(\w+) ([0-9a-f]{40})\n$/.exec(found?.stdout ?? '') ?? []
  if (commit === undefined) throw new AppError('bundle-invalid', `there is no commit ${revision}`)
  if (type !== 'commit') throw new AppError('bundle-invalid', `${revision} is no commit`)
  return commit
}

/** Which of these commits the repository has. */
async function presentOf(git: Git, commits: readonly string[]): Promise<string[]> {
  if (commits.length === 0) return []
  const { stdout } = await git(['cat-file', '--batch-check=%(objecttype) %(objectname)'], { input: commits.map((oid) => `${oid}\n`).join('') })
  return stdout.split('\n').flatMap((line) => (line.startsWith('commit ') ? [line.slice('commit '.length)] : []))
}

/** Fewer than git's standard output is kept of (local.ts), so that none is cut off. */
const MAX_COMMITS = 10_000

/**
 * What the push builds on: of all that the host has, only the commits where the new ones begin, since the host copies the history
 * of each for its checks. All of it where that cannot be told.
 */
async function basesOf({ git }: PushDeps, { commit, tips }: Push): Promise<string[]> {
  const present = [...new Set(await presentOf(git, tips))]
  const input = [commit, ...present.map((oid) => `^${oid}`), ''].join('\n')
  const found = await git(['rev-list', '--boundary', `--max-count=${String(MAX_COMMITS)}`, '--stdin'], { input })
  const lines = found.stdout.split('\n').filter((line) => line !== '')
  if (found.status !== 0 || lines.filter((line) => !line.startsWith('-')).length >= MAX_COMMITS) return present
  // nothing new: the host has the commit itself
  if (lines.length === 0) return present.length === 0 ? [] : [commit]
  return lines.flatMap((line) => (line.startsWith('-') ? [line.slice(1)] : []))
}

/** gitformat-bundle(5); a `git bundle create` needs a ref for its tip, and the name is ignored anyway. */
const toHeader = (commit: string, bases: readonly string[]): string =>
  ['# v2 git bundle', ...bases.map((oid) => `-${oid}`), `${commit} refs/heads/pushed`, '', ''].join('\n')

/** Writes the bundle of a commit without what the bases have; its size. */
async function writeBundle({ git }: PushDeps, path: string, { commit, progress = false }: Push, bases: readonly string[]): Promise<number> {
  const file = await open(path, 'wx', 0o600)
  try {
    await file.writeFile(toHeader(commit, bases))
    const input = [commit, ...bases.map((oid) => `^${oid}`), ''].join('\n')
    const shown = progress ? ['--progress', '--all-progress-implied'] : ['-q']
    const packed = await git(['pack-objects', '--revs', '--stdout', '--thin', '--delta-base-offset', ...shown], { input, output: file.fd, progress })
    if (packed.status !== 0) throw new AppError('bundle-invalid', `packing ${commit} failed: ${wordsOf(packed)}`)
    return (await file.stat()).size
  } finally {
    await file.close()
  }
}

/** Pushes one commit to a task. Throws what the host refuses. */
export async function pushCommit(deps: PushDeps, push: Push): Promise<Pushed> {
  const { project, task, commit } = push
  const bases = await basesOf(deps, push)
  const dir = await mkdtemp(join(deps.temporaryDir, 'mosaic-push-'))
  try {
    const path = join(dir, 'bundle')
    const size = await writeBundle(deps, path, push, bases)
    const { reply, close } = await exchange(deps.door, { op: 'push', project, task, commit, size }, path)
    close()
    return { push: String(reply.push), ref: String(reply.ref), commit }
  } finally {
    await rm(dir, { recursive: true, force: true })
  }
}
