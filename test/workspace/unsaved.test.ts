import { chmodSync, mkdirSync, readdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { prepareWorkspace, unsavedWork } from '../../src/workspace/prepare.ts'
import { fifo, makeWorld, snapshot, type World } from './world.ts'

let w: World
beforeEach(async () => {
  w = await makeWorld()
  const projects = [{ id: 'stack', root: w.project, branch: 'main' }]
  await prepareWorkspace(w.deps, { business: 'acme', projects, workspace: w.workspace, deadlineMs: 20_000 })
})
afterEach(() => w.close())

const unsaved = () => unsavedWork(w.deps, { business: 'acme', workspace: w.workspace })
const beside = (...names: string[]): string => join(w.workspace.path, ...names)

test('a clone is judged whatever the configuration says of its project, by its repository while there is one', async () => {
  expect(await unsaved()).toEqual([]) // the control
  const commit = w.commit(w.clone, 'mine', 'mine.txt')
  expect(await unsaved()).toEqual([{ project: 'stack', reason: 'unpushed' }])
  w.git(w.repository, 'fetch', '-q', w.clone, `${commit}:refs/heads/work/t-1`)
  expect(await unsaved()).toEqual([])
  renameSync(w.repository, `${w.repository}.away`)
  expect(await unsaved()).toEqual([{ project: 'stack', reason: 'unpushed' }])
})

test('a repository that the agent made itself is work, from its first commit on', async () => {
  mkdirSync(beside('own'))
  w.git(beside('own'), 'init', '-q')
  expect(await unsaved()).toEqual([])
  w.commit(beside('own'), 'mine')
  expect(await unsaved()).toEqual([{ project: 'own', reason: 'unpushed' }])
  w.git(beside('own'), 'worktree', 'add', '-q', beside('tree'))
  expect(await unsaved()).toEqual([
    { project: 'own', reason: 'unpushed' },
    { project: 'tree', reason: 'unreadable' },
  ])
})

const ENTRIES: readonly (readonly [name: string, make: () => unknown, reason: string | null])[] = [
  ['notes.txt', () => w.write(beside('notes.txt'), 'mine'), 'dirty'],
  ['folder', () => w.write(beside('folder', 'deep', 'notes.txt'), 'mine'), 'dirty'],
  ['link', () => symlinkSync('/etc/passwd', beside('link')), 'dirty'],
  [
    'closed',
    () => {
      w.write(beside('closed', 'x'), 'mine')
      chmodSync(beside('closed'), 0)
    },
    'dirty',
  ],
  ['bare.git', () => w.git(w.workspace.path, 'clone', '-q', '--bare', w.project, 'bare.git'), 'dirty'],
  ['\ufffd', () => writeFileSync(Buffer.concat([Buffer.from(`${w.workspace.path}/`), Buffer.from([0xff])]), 'mine'), 'dirty'],
  ['empty', () => mkdirSync(beside('empty')), null],
  ['empty.txt', () => w.write(beside('empty.txt'), ''), null],
  ['pipe', () => fifo(beside('pipe')), null],
  ['.mosaic-new-stack', () => w.write(beside('.mosaic-new-stack', 'file.txt'), 'half'), null],
]
test.each(ENTRIES)('beside the clones, %s', async (name, make, reason) => {
  make()
  // the picture of a tree has no words for what cannot be read or told
  const before = ['closed', '\ufffd'].includes(name) ? null : snapshot(w.workspace.path)
  expect(await unsaved()).toEqual(reason === null ? [] : [{ project: name, reason }])
  if (before !== null) expect(snapshot(w.workspace.path)).toEqual(before)
})

test('a link in the place of a clone, or of its .git, is followed nowhere', async () => {
  renameSync(w.clone, w.path('elsewhere'))
  symlinkSync(w.path('elsewhere'), w.clone)
  expect(await unsaved()).toEqual([{ project: 'stack', reason: 'dirty' }])
  rmSync(w.clone)
  mkdirSync(w.clone)
  symlinkSync(w.path('elsewhere', '.git'), join(w.clone, '.git'))
  expect(await unsaved()).toEqual([{ project: 'stack', reason: 'unreadable' }])
})

test('entries without end are told as far as a reply goes', async () => {
  for (let n = 0; n < 500; n++) w.write(beside(`${'n'.repeat(200)}${String(n)}`), 'x')
  expect(await unsaved()).toHaveLength(100)
})

test('an empty workspace costs no sandbox', async () => {
  for (const name of readdirSync(w.workspace.path)) rmSync(beside(name), { recursive: true })
  const { runs } = w.counters
  expect(await unsaved()).toEqual([])
  expect(w.counters.runs).toBe(runs)
  w.write(beside('notes.txt'), 'mine')
  expect(await unsaved()).toHaveLength(1)
  expect(w.counters.runs).toBe(runs + 1)
})
