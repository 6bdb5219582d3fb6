import { chmodSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { prepareWorkspace, unsavedWork } from '../../src/workspace/prepare.ts'
import { fifo, makeWorld, snapshot, type World } from './world.ts'

let w: World
beforeEach(async () => {
  w = await makeWorld()
  const projects = [{ id: 'stack', root: w.project, branch: 'main' }]
  await prepareWorkspace(w.deps, { business: 'acme', projects, workspace: w.workspace, deadlineMs: 20_000 })
  w.write(inClone('.git', 'info', 'exclude'), 'ignored\n')
})
afterEach(() => w.close())

const unsaved = () => unsavedWork(w.deps, { business: 'acme', workspace: w.workspace })
const inClone = (...names: string[]): string => join(w.clone, ...names)
const git = (...args: string[]): string => w.git(w.clone, ...args)

/** A worktree that is linked to the clone, in a folder that git ignores. */
function linkTree(...args: string[]): string {
  const tree = inClone('ignored', 'try')
  git('worktree', 'add', '-q', ...args, tree)
  return tree
}

/** Another repository in a folder that git ignores. */
function nest(...args: string[]): string {
  git(...args, inClone('ignored', 'nested'))
  return inClone('ignored', 'nested')
}

function addSubmodule(): string {
  w.git(w.root, 'init', '-q', 'library')
  w.commit(w.path('library'), 'library')
  git('-c', 'protocol.file.allow=always', 'submodule', '--quiet', 'add', w.path('library'), 'library')
  git('commit', '-q', '-m', 'library')
  w.git(w.repository, 'fetch', '-q', w.clone, 'HEAD:refs/heads/work/t-1')
  return inClone('library')
}

/** Commits that the working repository has, and nothing else, kept in every way there is: none of it is lost with the clone. */
const SAVED: readonly (readonly [name: string, make: () => unknown])[] = [
  ['a worktree as it was made', () => linkTree('--detach')],
  ['a worktree whose files are gone', () => rmSync(linkTree('--detach'), { recursive: true })],
  ['a tag of a tag', () => tagTwice('HEAD')],
  ['a repository that holds what it was cloned from', () => nest('clone', '-q', w.project)],
  ['a repository without a commit', () => nest('init', '-q')],
  ['a submodule as it was added', addSubmodule],
  ['ignored files', () => w.write(inClone('ignored', 'deep', 'notes.txt'), 'mine')],
]
test.each(SAVED)('%s holds nothing unsaved', async (_name, make) => {
  make()
  const before = snapshot(w.workspace.path)
  expect(await unsaved()).toEqual([])
  expect(snapshot(w.workspace.path)).toEqual(before)
})

function tagTwice(commit: string): void {
  git('tag', '-a', '-m', 'one', 'one', commit)
  git('-c', 'advice.nestedTag=false', 'tag', '-a', '-m', 'two', 'two', 'one')
  git('tag', '-d', 'one')
}

/** A commit that no branch has. */
function looseCommit(): string {
  const commit = w.commit(w.clone, 'mine', 'mine.txt')
  git('reset', '-q', '--hard', 'HEAD~')
  return commit
}

function stage(tree: string): string {
  w.write(join(tree, 'mine.txt'), 'mine')
  w.git(tree, 'add', 'mine.txt')
  return tree
}

function commitOnBranch(tree: string): void {
  w.git(tree, 'checkout', '-q', '-b', 'mine')
  w.commit(tree, 'mine')
  w.git(tree, 'checkout', '-q', '-')
}

function closeIgnored(): void {
  w.write(inClone('ignored', 'closed', 'x'), 'mine')
  chmodSync(inClone('ignored', 'closed'), 0)
}

const UNSAVED: readonly (readonly [name: string, make: () => unknown, reason: string])[] = [
  ['a commit that only the detached HEAD of a worktree is at', () => w.commit(linkTree('--detach'), 'mine'), 'unpushed'],
  [
    'such a commit, when the files are gone',
    () => {
      w.commit(linkTree('--detach'), 'mine')
      rmSync(inClone('ignored'), { recursive: true })
    },
    'unpushed',
  ],
  ['a commit that only a ref of a worktree is at', () => w.git(linkTree('--detach'), 'update-ref', 'refs/worktree/mine', looseCommit()), 'unpushed'],
  ['a change in a worktree', () => w.write(join(linkTree('--detach'), 'file.txt'), 'mine'), 'dirty'],
  ['a new file in a worktree', () => w.write(join(linkTree('-b', 'try'), 'mine.txt'), 'mine'), 'dirty'],
  ['what was staged in a worktree whose files are gone', () => rmSync(stage(linkTree('--detach')), { recursive: true }), 'dirty'],
  ['a worktree that was moved by hand', () => renameSync(linkTree('--detach'), inClone('ignored', 'moved')), 'unreadable'],
  ['a worktree of which nothing says where it is', () => rmSync(inClone('.git', 'worktrees', 'try', linkTree('--detach') && 'gitdir')), 'unreadable'],
  ['submodules of a worktree', () => mkdirSync(inClone('.git', 'worktrees', linkTree('--detach') && 'try', 'modules')), 'unreadable'],
  ['a bisection in a worktree', () => w.git(linkTree('--detach'), 'bisect', 'start'), 'dirty'],
  ['a worktree that git waits for', () => fifo(join(linkTree('--detach'), '.gitmodules')), 'hung'],
  ['a worktree whose place git waits for', () => hold(inClone('.git', 'worktrees', linkTree('--detach') && 'try', 'gitdir')), 'unreadable'],
  ['worktrees that are linked away', () => symlinkSync('/etc', inClone('.git', 'worktrees')), 'unreadable'],
  ['more worktrees than are looked at', manyTrees, 'unpushed'],
  ['a commit that only a tag of a tag is at', () => tagTwice(looseCommit()), 'unpushed'],
  ['a tag of a file', () => git('tag', 'mine', w.gitInput(w.clone, 'mine', 'hash-object', '-w', '--stdin')), 'unpushed'],
  ['a tag of a tree', () => git('tag', 'mine', 'HEAD^{tree}'), 'unpushed'],
  ['a tag of a tag of a tree', () => tagTwice('HEAD^{tree}'), 'unpushed'],
  ['a ref at nothing', () => writeFileSync(inClone('.git', 'refs', 'tags', 'mine'), `${'d'.repeat(40)}\n`), 'unreadable'],
  [
    'a stash',
    () => {
      w.write(inClone('file.txt'), 'mine')
      git('stash', '-q')
    },
    'unpushed',
  ],
  ['a merge in the middle', () => git('merge', '-q', '--no-ff', '--no-commit', '-s', 'ours', looseCommit()), 'dirty'],
  ['a rebase in the middle', () => mkdirSync(inClone('.git', 'rebase-merge')), 'dirty'],
  ['a commit in a repository in an ignored folder', () => w.commit(nest('init', '-q'), 'mine'), 'unpushed'],
  ['a commit on a branch of a clone in an ignored folder', () => commitOnBranch(nest('clone', '-q', w.project)), 'unpushed'],
  ['a commit on a branch of a submodule', () => commitOnBranch(addSubmodule()), 'unpushed'],
  ['submodules that are linked away', () => symlinkSync('/etc', inClone('.git', 'modules')), 'unreadable'],
  ['a closed directory in an ignored folder', closeIgnored, 'unreadable'],
  ['what is no repository, but called so', () => mkdirSync(inClone('ignored', '.git'), { recursive: true }), 'unreadable'],
]
test.each(UNSAVED)('%s is unsaved', async (_name, make, reason) => {
  expect(await unsaved()).toEqual([]) // the control
  make()
  expect(await unsaved()).toEqual([{ project: 'stack', reason }])
})

function hold(path: string): void {
  rmSync(path)
  fifo(path)
}

function manyTrees(): void {
  for (let n = 0; n <= 100; n++) {
    const gitDir = inClone('.git', 'worktrees', String(n))
    w.write(join(gitDir, 'gitdir'), '/nowhere/.git\n')
    w.write(join(gitDir, 'commondir'), '../..\n')
    w.write(join(gitDir, 'HEAD'), `${git('rev-parse', 'HEAD')}\n`)
  }
}
