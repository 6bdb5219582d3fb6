import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { silentLog } from '../../src/core/log.ts'
import type { RunHelper } from '../../src/core/run-helper.ts'
import { countPacks, type RepackDeps, repackRepository } from '../../src/git/repack.ts'
import { type GitWorld, makeGitWorld } from './world.ts'

const PUSHES = 60
let w: GitWorld
let commits: string[]
let deps: RepackDeps
beforeAll(async () => {
  w = await makeGitWorld()
  commits = []
  for (let n = 0; n < PUSHES; n++) {
    const blob = w.forge.object('blob', `work ${String(n)}\n`)
    const commit = w.forge.commit(w.forge.tree([{ mode: '100644', name: 'file', oid: blob }]), w.base)
    await w.push(`t-${String(n)}`, w.forge.honest(commit, w.base), commit)
    commits.push(commit)
  }
  deps = { ...w.intake, log: silentLog }
}, 180_000)
afterAll(() => w.close())

const objects = (): string[] =>
  w.git(w.repository, 'cat-file', '--batch-all-objects', '--batch-check=%(objectname) %(objecttype) %(objectsize)').split('\n').sort()
const refs = (): string => w.git(w.repository, 'for-each-ref')
const packs = (): string[] => readdirSync(join(w.repository, 'objects', 'pack')).sort()

test('below the limit nothing is done', async () => {
  const before = packs()
  const { runs } = w.counters
  expect(await repackRepository(deps, w.repository, { mostPacks: PUSHES + 5 })).toBeNull()
  expect(packs()).toEqual(before)
  expect(w.counters.runs).toBe(runs)
})

test('one that is killed, cancelled or fails leaves the repository whole, and nothing of its own', async () => {
  const before = [objects(), refs(), packs()]
  const cut =
    (script: string): RunHelper =>
    (request) =>
      w.runHelper({ ...request, command: ['/bin/sh', '-c', script, 'sh', ...request.command] })
  const limited: RunHelper = (request) => w.runHelper({ ...request, command: ['/usr/bin/prlimit', '--fsize=4096', '--', ...request.command] })
  const left = join(w.repository, 'objects', 'pack', '.tmp-1-pack-x.pack')
  await expect(repackRepository({ ...deps, runHelper: cut(`: >${left}; kill -9 $$`) }, w.repository)).rejects.toThrow('git repack')
  await expect(repackRepository({ ...deps, runHelper: limited }, w.repository)).rejects.toMatchObject({ code: 'disk-full' })
  await expect(repackRepository(deps, w.repository, { signal: AbortSignal.abort() })).rejects.toMatchObject({ code: 'interrupted' })
  expect([objects(), refs(), packs()]).toEqual(before)
  expect(existsSync(left)).toBe(false)
})

test('sixty pushes become few packs with every object, reachable or not; pushes at the same time wait their turn', async () => {
  const orphan = w.gitInput(w.repository, 'nobody refers to this\n', 'hash-object', '-w', '--stdin')
  const before = objects()
  const next = w.forge.commit(w.forge.git('rev-parse', `${w.base}^{tree}`), commits[0] ?? '')
  const [first, second, pushed] = await Promise.all([
    repackRepository(deps, w.repository),
    repackRepository(deps, w.repository),
    w.push('t-0', w.forge.honest(next, commits[0] ?? ''), next),
  ])
  // whoever gets the lock first repacks; the other then finds nothing to do
  const repacked = first ?? second
  expect(repacked?.before).toBeGreaterThanOrEqual(PUSHES)
  expect(repacked?.after).toBeLessThanOrEqual(3)
  expect(await countPacks(w.repository)).toBeLessThanOrEqual(4)
  expect(pushed).toMatchObject({ commit: next })
  const after = objects()
  expect(before.filter((object) => !after.includes(object))).toEqual([])
  expect(w.git(w.repository, 'cat-file', '-t', orphan)).toBe('blob')
  expect(w.git(w.repository, 'fsck', '--full', '--strict', '--no-dangling')).toBe('')
  expect(w.git(w.repository, 'for-each-ref', '--format=%(objectname)', 'refs/heads/work').split('\n').sort()).toEqual([next, ...commits.slice(1)].sort())
})
