import { execFile } from 'node:child_process'
import { realpath } from 'node:fs/promises'
import { dirname, join, sep } from 'node:path'
import { AppError, errnoOf, messageOf } from '../core/errors.ts'
import { gitCommand, type GitSettings } from '../git/command.ts'
import type { FetchableRow } from '../protocol/rows.ts'

/** The founder's own act, in the founder's own process: the CLI loads this file, the host never runs it. */

const TIMEOUT_MS = 600_000
const OUTPUT_BYTES = 4 * 1024 * 1024
const FLAGS = ['--quiet', '--no-tags', '--no-recurse-submodules', '--no-write-fetch-head', '--no-auto-maintenance', '--no-filter', '--refmap=']

interface Place {
  readonly cwd: string
  readonly signal: AbortSignal
}

interface Ran {
  readonly status: number
  readonly stdout: string
  readonly stderr: string
}

export interface FetchedTask {
  readonly branch: string
  /** The git directory of the repository that has it now. */
  readonly into: string
}

function toFailure(error: Error, signal: AbortSignal): AppError {
  if (signal.aborted) return new AppError('interrupted', 'interrupted')
  if (errnoOf(error) === 'ENOENT') return new AppError('program-missing', 'git is not installed', { cause: error })
  return new AppError('internal', `git failed: ${messageOf(error)}`, { cause: error })
}

type Git = (args: readonly string[], settings?: Partial<GitSettings>) => Promise<Ran>

const createGit =
  ({ cwd, signal }: Place, globalConfig: string): Git =>
  (args, settings = {}) => {
    const { command, env } = gitCommand({ globalConfig, safeDirectories: [], ...settings }, args)
    const [file = 'git', ...rest] = command
    return new Promise((resolve, reject) => {
      const options = { cwd, env, signal, timeout: TIMEOUT_MS, killSignal: 'SIGKILL', maxBuffer: OUTPUT_BYTES } as const
      execFile(file, rest, options, (error, stdout, stderr) => {
        if (error === null) resolve({ status: 0, stdout, stderr })
        else if (typeof error.code === 'number') resolve({ status: error.code, stdout, stderr })
        else reject(toFailure(error, signal))
      })
    })
  }

const wordsOf = ({ stderr }: Ran): string => stderr.trim().replace(/^fatal: /, '')

/** The common git directory around a place; null: there is no repository. Throws when there is one that git does not open. */
async function findRepository(git: Git): Promise<string | null> {
  const found = await git(['rev-parse', '--path-format=absolute', '--git-common-dir'])
  if (found.status === 0) return found.stdout.replace(/\n$/, '')
  if (found.stderr.includes('not a git repository')) return null
  throw new AppError('usage', `git does not open the repository here: ${wordsOf(found)}`)
}

/** A clone of a session is no place for the founder's git: an agent writes its configuration. */
async function assertOwn(into: string, { gitConfig }: FetchableRow): Promise<void> {
  const dataRoot = dirname(dirname(gitConfig))
  if (`${await realpath(into)}${sep}`.startsWith(`${await realpath(dataRoot)}${sep}`)) {
    throw new AppError('usage', `${into} lies in the data root`, { hint: 'run this in a repository of your own' })
  }
}

async function assertNotCheckedOut(git: Git, ref: string, branch: string): Promise<void> {
  const { stdout } = await git(['worktree', 'list', '--porcelain'])
  if (stdout.split('\n').includes(`branch ${ref}`)) {
    throw new AppError('branch-checked-out', `the branch ${branch} is checked out`, { hint: 'git switch main, then once more' })
  }
}

/** The branch is ours to move, but for commits that somebody made on it. */
async function assertMovable(git: Git, ref: string, branch: string, { commit, earlier, repository }: FetchableRow): Promise<void> {
  const found = await git(['rev-parse', '--verify', '--quiet', '--end-of-options', ref])
  const current = found.stdout.trim()
  if (found.status !== 0 || current === commit || earlier.includes(current)) return
  const forward = await git(['merge-base', '--is-ancestor', '--end-of-options', current, commit], { alternates: [join(repository, 'objects')] })
  if (forward.status === 0) return
  throw new AppError('not-fast-forward', `the branch ${branch} is at ${current}, which was never pushed`, { hint: `git branch -m ${branch} ANOTHER-NAME` })
}

/**
 * Brings a pushed commit, by its id, into the repository around `cwd`, else into the project's root, as the branch
 * `mosaic/<task>`. Nothing but objects and that one ref is written. Throws `branch-checked-out`, `not-fast-forward`, `usage`.
 */
export async function fetchInto({ cwd, signal }: Place, found: FetchableRow): Promise<FetchedTask> {
  const { task, commit, repository, root, gitConfig } = found
  const branch = `mosaic/${task}`
  const ref = `refs/heads/${branch}`
  const here = await findRepository(createGit({ cwd, signal }, gitConfig))
  if (here === null && root === null) throw new AppError('project-not-found', `the project ${found.project} is no longer configured, and here is no repository`)
  const git = createGit({ cwd: here === null ? (root ?? cwd) : cwd, signal }, gitConfig)
  const into = here ?? (await findRepository(git))
  if (into === null) throw new AppError('usage', `${root ?? cwd} is no git repository`)
  await assertOwn(into, found)
  await assertNotCheckedOut(git, ref, branch)
  await assertMovable(git, ref, branch, found)
  const fetched = await git(['fetch', ...FLAGS, '--end-of-options', repository, `+${commit}:${ref}`], { transport: 'file' })
  if (fetched.status !== 0) throw new AppError('internal', `git fetch into ${into} failed: ${wordsOf(fetched)}`)
  return { branch, into }
}
