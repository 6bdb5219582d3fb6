import { lstatSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { GitSettings } from '../../git/command.ts'
import type { KeptReason } from '../../protocol/common.ts'
import { LOCKS, parseStatus, READ_FIRST, READ_FIRST_IN_TREE, type Status, STATUS_ARGS, UNDER_WAY } from '../status.ts'
import type { Deadline } from './deadline.ts'
import { type GitRun, runGit } from './run-git.ts'

/** What a clone is found to be, compared with the working repository's main. */
export type Look = { readonly state: 'current' } | { readonly state: 'behind' } | { readonly state: 'kept'; readonly reason: KeptReason }

export interface Clone {
  readonly path: string
  readonly branch: string
  /** Settings whose alternates hold main's objects: nothing is copied into a clone to look at it. */
  readonly settings: GitSettings
  readonly deadline: Deadline
}

const kept = (reason: KeptReason): Look => ({ state: 'kept', reason })
export const hasAny = (dir: string, names: readonly string[]): boolean =>
  names.some((name) => lstatSync(join(dir, name), { throwIfNoEntry: false }) !== undefined)
/** Is it a directory itself, no link to one? */
export const isDirectory = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === true

const GONE: GitRun = { status: null, timedOut: false, stdout: '', stderr: '' }
export const feedClone = (clone: Clone, input: string, ...args: readonly string[]): Promise<GitRun> =>
  runGit(clone.settings, args, { deadline: clone.deadline, cwd: clone.path, input }).catch(() => GONE)
export const inClone = (clone: Clone, ...args: readonly string[]): Promise<GitRun> => feedClone(clone, '', ...args)

/** A FIFO or a device. Through a link too: that leads nowhere but in the sandbox, and stat(2) does not wait for a FIFO's other end. */
export function isEndless(path: string): boolean {
  try {
    const facts = statSync(path)
    return facts.isFIFO() || facts.isCharacterDevice()
  } catch {
    return false
  }
}

/** Would the first files that git reads hold it? */
function wouldHang(clone: string): boolean {
  if ([...READ_FIRST_IN_TREE, ...READ_FIRST].some((name) => isEndless(join(clone, name)))) return true
  try {
    const ref = /^ref: (.+)$/m.exec(readFileSync(join(clone, '.git', 'HEAD'), 'utf8'))?.[1]
    return ref !== undefined && isEndless(join(clone, '.git', ref))
  } catch {
    return false // what cannot be read holds nobody: git says what is wrong
  }
}

/** What git says of the tree it is started in. */
export async function askStatus(clone: Clone, ...global: readonly string[]): Promise<Status | 'hung' | 'unreadable'> {
  const run = await inClone(clone, ...global, ...STATUS_ARGS)
  if (run.timedOut) return 'hung'
  return (run.status === 0 ? parseStatus(run.stdout) : undefined) ?? 'unreadable'
}

/** What git says of a clone; a link or a file in the place of `.git` would lead out of it. */
export async function statusOf(clone: Clone): Promise<Status | 'hung' | 'unreadable'> {
  if (!isDirectory(join(clone.path, '.git'))) return 'unreadable'
  return wouldHang(clone.path) ? 'hung' : askStatus(clone)
}

async function relation(clone: Clone, head: string | null, tip: string): Promise<Look> {
  if (head === tip) return { state: 'current' }
  if (head === null) return kept('diverged')
  const runs = [
    await inClone(clone, 'merge-base', '--is-ancestor', '--end-of-options', head, tip),
    await inClone(clone, 'merge-base', '--is-ancestor', '--end-of-options', tip, head),
  ] as const
  if (runs.some((run) => run.timedOut)) return kept('hung')
  const [behind, ahead] = runs.map((run) => run.status)
  if (behind === 0) return { state: 'behind' }
  if (ahead === 0) return kept('ahead')
  return kept(behind === 1 && ahead === 1 ? 'diverged' : 'unreadable')
}

/** The first reason of KEPT_REASONS that holds, in their order, or how the clone stands to main. */
export async function lookAtClone(clone: Clone, tip: string): Promise<Look> {
  const status = await statusOf(clone)
  if (typeof status === 'string') return kept(status)
  const gitDir = join(clone.path, '.git')
  if (hasAny(gitDir, LOCKS)) return kept('locked')
  if (hasAny(gitDir, UNDER_WAY)) return kept('in-progress')
  if (status.branch === null) return kept('detached')
  if (status.branch !== clone.branch) return kept('branch')
  if (status.dirty) return kept('dirty')
  return relation(clone, status.head, tip)
}
