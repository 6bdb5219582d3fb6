import { mkdirSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createRootLooks } from '../../src/workspace/root-state.ts'
import { syncProject, type SyncDeps } from '../../src/workspace/sync.ts'
import { fifo, makeWorld, type World } from './world.ts'

let w: World
let deps: SyncDeps
beforeEach(async () => {
  w = await makeWorld()
  // by a clock that is ahead: what these tests have just written is old enough to be known by its times
  deps = { ...w.deps, rootLooks: createRootLooks(() => Date.now() + 1000) }
})
afterEach(() => w.close())

const sync = (): Promise<unknown> =>
  syncProject(deps, 'acme', { id: 'stack', root: w.project, branch: 'main' }, { timeoutMs: 3000 }).catch((error: unknown) => error)

/** Sandboxes that a look at the root takes. */
async function looks(): Promise<number> {
  const before = w.counters.runs
  await sync()
  return w.counters.runs - before
}

const inGit = (...names: string[]): string => join(w.project, '.git', ...names)

test('a root is looked at in a sandbox once, and again when its branch has moved', async () => {
  expect([await looks(), await looks(), await looks()]).toEqual([1, 1, 0])
  const tip = w.commit(w.project, 'two')
  // a look, and a helper that moves main
  expect(await looks()).toBe(2)
  expect(w.git(w.repository, 'rev-parse', 'main')).toBe(tip)
  expect([await looks(), await looks()]).toEqual([1, 0])
})

test('one that changed in the tick of its look is looked at again', async () => {
  deps = { ...w.deps, rootLooks: createRootLooks() }
  await sync()
  w.git(w.project, 'pack-refs', '--all')
  expect([await looks(), await looks()]).toEqual([1, 1])
})

const changes: readonly (readonly [string, () => unknown])[] = [
  ['packed refs', () => w.git(w.project, 'pack-refs', '--all')],
  ['another configuration', () => w.git(w.project, 'config', 'user.name', 'x')],
  ['packed objects', () => w.git(w.project, 'gc', '-q')],
  [
    'objects gone',
    () => {
      rmSync(inGit('objects'), { recursive: true })
      mkdirSync(inGit('objects'))
    },
  ],
  ['the branch gone', () => w.git(w.project, 'branch', '-m', 'trunk')],
  ['HEAD gone', () => rmSync(inGit('HEAD'))],
  [
    'a FIFO as the branch',
    () => {
      rmSync(inGit('refs', 'heads', 'main'))
      fifo(inGit('refs', 'heads', 'main'))
    },
  ],
  ['a mark of a shallow clone', () => w.write(inGit('shallow'), '')],
  ['alternates', () => w.write(inGit('objects', 'info', 'alternates'), '')],
]
test.each(changes)('a change of the root is looked at: %s', async (_what, change) => {
  await sync()
  expect([await looks(), await looks()]).toEqual([1, 0])
  change()
  expect(await looks()).toBeGreaterThan(0)
})

const elsewhere: readonly (readonly [string, () => unknown])[] = [
  [
    'a symbolic ref',
    () => {
      w.git(w.project, 'branch', '-m', 'trunk')
      w.git(w.project, 'symbolic-ref', 'refs/heads/main', 'refs/heads/trunk')
    },
  ],
  [
    'a link',
    () => {
      renameSync(inGit('refs', 'heads', 'main'), w.path('ref'))
      symlinkSync(w.path('ref'), inGit('refs', 'heads', 'main'))
    },
  ],
  [
    'objects behind a link',
    () => {
      renameSync(inGit('objects'), w.path('objects'))
      symlinkSync(w.path('objects'), inGit('objects'))
    },
  ],
]
test.each(elsewhere)('what may change out of sight is looked at every time: %s', async (_what, change) => {
  change()
  await sync()
  expect([await looks(), await looks()]).toEqual([1, 1])
})
