import { chmodSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { AppError } from '../../src/core/errors.ts'
import type { PushRows } from '../../src/git/intake.ts'
import { snapshot } from '../workspace/world.ts'
import { type GitWorld, makeGitWorld } from './world.ts'

let w: GitWorld
let tree: string
beforeEach(async () => {
  w = await makeGitWorld()
  tree = w.forge.git('rev-parse', `${w.base}^{tree}`)
})
afterEach(() => w.close())

const packs = (): string[] => readdirSync(join(w.repository, 'objects', 'pack')).sort()
const objects = (): Record<string, string> => snapshot(join(w.repository, 'objects'))
const closed = (): Promise<never> => Promise.reject(new AppError('task-closed', 'the task is closed'))

async function push(task: string, commit: string, rows: Partial<PushRows> = {}): Promise<unknown> {
  return w.push(task, w.forge.honest(commit, w.base), commit, { rows }).catch((error: unknown) => error)
}

test.each([
  ['the rows when they are asked again', { ask: closed }],
  ['the record', { record: closed }],
])('a push that is refused by %s leaves no object, no ref, no quarantine', async (_, rows) => {
  const commit = w.forge.commit(tree, w.base)
  const [before, refs] = [objects(), w.git(w.repository, 'for-each-ref')]
  expect(await push('t-1', commit, rows)).toMatchObject({ code: 'task-closed' })
  expect(objects()).toEqual(before)
  expect(w.git(w.repository, 'for-each-ref')).toBe(refs)
  expect(readdirSync(join(w.gitRoot, '.incoming'))).toEqual([])
  expect(await push('t-1', commit)).toMatchObject({ commit }) // the control
  expect(packs().length).toBeGreaterThan(Object.keys(before).filter((path) => path.startsWith('pack/')).length)
})

test('the objects of a push that was taken stay when the same pack is refused for another task', async () => {
  const commit = w.forge.commit(tree, w.base)
  await push('t-1', commit)
  const before = objects()
  expect(await push('t-2', commit, { record: closed })).toMatchObject({ code: 'task-closed' })
  expect(objects()).toEqual(before)
  expect(w.git(w.repository, 'fsck', '--full', '--strict')).toBe('')
})

test('a pack that cannot be moved, or a ref that cannot, leaves nothing either', async () => {
  const commit = w.forge.commit(tree, w.base)
  const before = objects()
  const dir = join(w.repository, 'objects', 'pack')
  const { mode } = statSync(dir)
  chmodSync(dir, 0o500)
  expect(await push('t-1', commit)).toMatchObject({ code: 'EACCES' })
  chmodSync(dir, mode)
  // left by a git that was killed: it holds up one push, not every later one
  w.write(join(w.repository, 'refs', 'heads', 'work', 't-1.lock'), '')
  expect(await push('t-1', commit)).toMatchObject({ code: 'busy' })
  expect(objects()).toEqual(before)
  expect(await push('t-1', commit)).toMatchObject({ commit })
})
