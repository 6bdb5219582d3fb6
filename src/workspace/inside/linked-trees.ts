import { lstatSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import type { UnsavedReason } from '../../protocol/prepare.ts'
import { READ_FIRST_IN_TREE, UNDER_WAY } from '../status.ts'
import { askStatus, type Clone, hasAny, inClone, isDirectory, isEndless } from './look.ts'

/** Each costs some git processes; who has more than that has work. */
const MAX_TREES = 100
const MAX_PATH_BYTES = 4096
/** What git reads of a linked worktree before it says anything. */
const READ_FIRST = ['HEAD', 'index', 'commondir', 'gitdir', 'config.worktree']

/** A worktree that `git worktree add` linked to a clone. gitrepository-layout(5) */
interface LinkedTree {
  /** Its part of the clone's `.git`. */
  readonly gitDir: string
  /** The `.git` in the tree itself. */
  readonly link: string
}

export interface LinkedTrees {
  readonly links: readonly string[]
  /** How git is asked about each. */
  readonly clones: readonly Clone[]
}

/** The path that a small file of git's holds, absolute; null where it holds none that git can be told. */
export function pathIn(file: string, prefix = ''): string | null {
  const facts = lstatSync(file, { throwIfNoEntry: false })
  if (facts?.isFile() !== true || facts.size > MAX_PATH_BYTES) return null
  const bytes = readFileSync(file)
  const text = bytes.toString('utf8')
  if (!Buffer.from(text).equals(bytes) || !text.startsWith(prefix)) return null
  return resolve(dirname(file), text.slice(prefix.length).replace(/\n$/, ''))
}

function toTree(gitDir: string): LinkedTree | null {
  const link = isDirectory(gitDir) ? pathIn(join(gitDir, 'gitdir')) : null
  return link === null ? null : { gitDir, link }
}

/** All that are linked to a clone; null where that cannot be told. */
function findTrees(clone: string): readonly LinkedTree[] | null {
  const directory = join(clone, '.git', 'worktrees')
  if (lstatSync(directory, { throwIfNoEntry: false }) === undefined) return []
  if (!isDirectory(directory)) return null
  const trees = readdirSync(directory).map((name) => toTree(join(directory, name)))
  return trees.every((tree) => tree !== null) ? trees : null
}

/** The files are gone, or out of the workspace: what was staged is still there. */
async function judgeIndex(tree: Clone, gitDir: string): Promise<UnsavedReason | null> {
  if (!hasAny(gitDir, ['index'])) return null
  const run = await inClone(tree, 'diff-index', '--cached', '--quiet', 'HEAD', '--')
  if (run.timedOut) return 'hung'
  if (run.status === 1) return 'dirty'
  return run.status === 0 ? null : 'unreadable'
}

async function judgeTree(clone: Clone, { gitDir, link }: LinkedTree): Promise<UnsavedReason | Clone> {
  if (READ_FIRST.some((name) => isEndless(join(gitDir, name)))) return 'hung'
  if (hasAny(gitDir, UNDER_WAY)) return 'dirty'
  if (hasAny(gitDir, ['modules'])) return 'unreadable' // submodules of its own, for which git has no names
  const path = dirname(link)
  const isThere = lstatSync(link, { throwIfNoEntry: false }) !== undefined
  const tree: Clone = { ...clone, path: isThere ? path : clone.path, settings: { ...clone.settings, gitDir } }
  if (!isThere) return (await judgeIndex(tree, gitDir)) ?? tree
  if (READ_FIRST_IN_TREE.some((name) => isEndless(join(path, name)))) return 'hung'
  const status = await askStatus(tree, '--work-tree=.')
  if (typeof status === 'string') return status
  return status.dirty ? 'dirty' : tree
}

/** The linked worktrees of a clone; the reason why one of them may not go. Their commits are looked at with the clone's. */
export async function judgeLinkedTrees(clone: Clone): Promise<UnsavedReason | LinkedTrees> {
  const trees = findTrees(clone.path)
  if (trees === null) return 'unreadable'
  if (trees.length > MAX_TREES) return 'unpushed'
  const clones: Clone[] = []
  for (const tree of trees) {
    const judged = await judgeTree(clone, tree)
    if (typeof judged === 'string') return judged
    clones.push(judged)
  }
  return { links: trees.map(({ link }) => link), clones }
}
