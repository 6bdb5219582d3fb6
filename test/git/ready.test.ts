import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { RunHelper } from '../../src/core/run-helper.ts'
import { openIncoming } from '../../src/git/incoming.ts'
import { type AcceptedPush, receivePush } from '../../src/git/intake.ts'
import { createReadyInspectors, type ReadyInspector, type ReadyInspectors } from '../../src/git/ready.ts'
import { syncProject } from '../../src/workspace/sync.ts'
import { type GitWorld, makeGitWorld } from './world.ts'

const RUN = 'r000000000001'
let w: GitWorld
let ready: ReadyInspectors
/** Sandboxes that were started. */
let started: number

beforeEach(async () => {
  w = await makeGitWorld()
  started = 0
  const runHelper: RunHelper = (request) => {
    started++
    return w.runHelper(request)
  }
  ready = createReadyInspectors({ ...w.intake, runHelper })
})
afterEach(async () => {
  await ready[Symbol.asyncDispose]()
  expect(readdirSync(join(w.gitRoot, '.incoming'))).toEqual([])
  w.close()
})

const { signal } = new AbortController()

async function takeReady(tips: readonly string[]): Promise<ReadyInspector> {
  ready.announce({ business: 'acme', project: 'stack', run: RUN, main: w.base, tips })
  const taken = await ready.take(RUN, 'stack', signal)
  if (taken === undefined) throw new Error('none stands ready')
  return taken
}

/** Pushes to t-1 by the inspector that stands ready. */
async function push(inspector: ReadyInspector, bytes: Buffer, commit: string): Promise<AcceptedPush> {
  await using taken = inspector
  writeFileSync(join(taken.path, 'bundle'), bytes)
  const wanted = { business: 'acme', project: 'stack', task: 't-1', visible: [], commit, ready: taken, directory: taken.path }
  const runHelper: RunHelper = (request) => {
    started++
    return w.runHelper(request)
  }
  return await receivePush({ ...w.intake, runHelper }, wanted, { ask: () => Promise.resolve(), record: () => Promise.resolve('p1') })
}

const commitOn = (...parents: string[]): string => w.forge.commit(w.forge.git('rev-parse', `${w.base}^{tree}`), ...parents)
/** Its only new object is a file that is a change of another commit's. */
const built = (text: string, parent: string): string =>
  w.forge.commit(w.forge.tree([{ mode: '100644', name: 'big.txt', oid: w.forge.object('blob', text) }]), parent)
const TEXT = Array.from({ length: 400 }, (_, n) => `line ${String(n)}`).join('\n')

test('a push is judged by the sandbox that waits for it, and by no other', async () => {
  const one = built(TEXT, w.base)
  await push(await takeReady([]), w.forge.honest(one, w.base), one)
  expect(started).toBe(1)
  const two = built(`${TEXT}\nmore`, one)
  await push(await takeReady([one]), w.forge.honest(two, one), two)
  expect(started).toBe(2)
  expect(w.git(w.repository, 'rev-parse', 'work/t-1')).toBe(two)
  expect(w.git(w.repository, 'fsck', '--strict')).toBe('')
})

test('what it did not copy beforehand it copies when it is asked', async () => {
  const one = built(TEXT, w.base)
  await push(await takeReady([]), w.forge.honest(one, w.base), one)
  const two = built(`${TEXT}\nmore`, one)
  expect(await push(await takeReady([]), w.forge.honest(two, one), two)).toMatchObject({ commit: two })
  expect(started).toBe(2)
})

test("another task's work stays out of its sight", async () => {
  const foreign = built(TEXT, w.base)
  await w.push('t-foreign', w.forge.honest(foreign, w.base), foreign)
  const own = commitOn(w.base)
  await w.push('t-1', w.forge.honest(own, w.base), own)
  const on = commitOn(foreign)
  await expect(push(await takeReady([own]), w.forge.honest(on, foreign), on)).rejects.toMatchObject({ code: 'missing-prerequisites' })
  const merge = commitOn(own, foreign)
  const bytes = w.forge.bundle({ tip: merge, prerequisites: [own], objects: [merge] })
  await expect(push(await takeReady([own]), bytes, merge)).rejects.toMatchObject({ code: 'missing-prerequisites' })
  const good = commitOn(own)
  expect(await push(await takeReady([own]), w.forge.honest(good, own), good)).toMatchObject({ commit: good })
})

test('once main has moved another judges', async () => {
  const taken = await takeReady([])
  w.commit(w.project, 'on')
  await syncProject(w.deps, 'acme', { id: 'stack', root: w.project, branch: 'main' }, { timeoutMs: 20_000 })
  const one = commitOn(w.base)
  expect(await push(taken, w.forge.honest(one, w.base), one)).toMatchObject({ commit: one })
  expect(started).toBeGreaterThan(1)
})

test('one that failed for reasons of its own refuses nobody', async () => {
  const taken = await takeReady([])
  taken.end()
  const one = commitOn(w.base)
  expect(await push(taken, w.forge.honest(one, w.base), one)).toMatchObject({ commit: one })
})

test('it is there once, for its run and project; ended, it leaves nothing', async () => {
  ready.announce({ business: 'acme', project: 'stack', run: RUN, main: w.base, tips: [] })
  ready.announce({ business: 'acme', project: 'stack', run: RUN, main: w.base, tips: [] })
  expect(await ready.take('r000000000002', 'stack', signal)).toBeUndefined()
  expect(await ready.take(RUN, 'site', signal)).toBeUndefined()
  const taken = await ready.take(RUN, 'stack', signal)
  expect(await ready.take(RUN, 'stack', signal)).toBeUndefined()
  expect(started).toBe(1)
  await taken?.[Symbol.asyncDispose]()
  await using unused = await openIncoming(w.gitRoot)
  expect(readdirSync(join(w.gitRoot, '.incoming'))).toHaveLength(unused.path === '' ? 0 : 1)
  ready.announce({ business: 'acme', project: 'stack', run: RUN, main: '0'.repeat(40), tips: [] })
  expect(await ready.take(RUN, 'stack', signal)).toBeUndefined()
})
