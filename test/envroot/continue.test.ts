import * as fs from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { EarlierRun } from '../../src/envroot/claim.ts'
import { holdLock, NEXT, openWorld, RUN, snapshot, type World } from './world.ts'

const FRESH_ENV = `coder.${NEXT}`

/** An earlier run of coder, with work in its root. */
async function openEarlier(): Promise<{ w: World; from: EarlierRun }> {
  const w = await openWorld()
  const claim = await w.claim({ run: RUN })
  claim.close()
  w.write(w.env('coder', 'workspace', 'notes'), 'mine')
  return { w, from: { run: RUN, business: 'acme', instance: 'coder', role: 'coder', task: null, env: 'coder', identity: claim.root.identity } }
}

test('what fits is continued: the same root, the same workspace, the conversation', async () => {
  const { w, from } = await openEarlier()
  const claim = await w.claim({ mode: 'continue', continueFrom: from })
  expect([claim.env, claim.outcome, claim.conversation, claim.continuityLost]).toEqual(['coder', 'continued', true, null])
  expect(fs.readFileSync(w.env('coder', 'workspace', 'notes'), 'utf8')).toBe('mine')
})

test.each([
  ['no such run', null],
  ['another role', { role: 'reviewer' }],
  ['another task', { task: 't-1' }],
  ['another business', { business: 'other' }],
  ['another instance', { instance: 'coder-2', env: 'coder-2' }],
  ["an env root that is not this instance's", { env: 'pm' }],
  ['no record of the root', { identity: null }],
] as const)('%s: the own root is kept, the conversation is not resumed, and the reason is told', async (_, change) => {
  const { w, from } = await openEarlier()
  const claim = await w.claim({ mode: 'continue', continueFrom: change === null ? null : { ...from, ...change } })
  expect([claim.env, claim.outcome, claim.conversation]).toEqual(['coder', 'kept', false])
  expect(claim.continuityLost).toMatch(change === null ? /no earlier run/ : new RegExp(`run ${RUN} `))
  expect(fs.readFileSync(w.env('coder', 'workspace', 'notes'), 'utf8')).toBe('mine')
})

test('a missing root is no error: a new one', async () => {
  const { w, from } = await openEarlier()
  fs.renameSync(w.env('coder'), join(w.root, 'moved'))
  const claim = await w.claim({ mode: 'continue', continueFrom: from })
  expect([claim.env, claim.outcome, claim.conversation]).toEqual(['coder', 'created', false])
  expect(claim.continuityLost).toContain('is gone')
})

test('two continuations of one root exclude each other; the second gets a root of its own', async () => {
  const { w, from } = await openEarlier()
  const first = await w.claim({ mode: 'continue', continueFrom: from, run: 'r0000000000cc' })
  const second = await w.claim({ mode: 'continue', continueFrom: from })
  expect([first.env, first.outcome, second.env, second.outcome]).toEqual(['coder', 'continued', FRESH_ENV, 'created'])
  expect(second.continuityLost).toContain('held by a running execution (run r0000000000cc)')
})

const DOUBTS: readonly (readonly [string, (w: World) => unknown])[] = [
  ['busy', (w) => holdLock(w.env('coder', 'lock'))],
  [
    'swapped for another of ours',
    async (w) => {
      fs.renameSync(w.env('coder'), join(w.root, 'moved'))
      await w.made()
    },
  ],
  [
    'swapped for a link',
    (w) => {
      fs.renameSync(w.env('coder'), join(w.root, 'moved'))
      fs.symlinkSync(join(w.root, 'moved'), w.env('coder'))
    },
  ],
  [
    'foreign',
    (w) => {
      const owner = fs.readFileSync(w.env('coder', 'owner.json'), 'utf8')
      w.write(w.env('coder', 'owner.json'), owner.replace('"env":"coder"', '"env":"pm"'))
    },
  ],
  [
    'without an owner',
    (w) => {
      fs.unlinkSync(w.env('coder', 'owner.json'))
    },
  ],
  [
    'in a reset that was cut off',
    (w) => {
      const owner = fs.readFileSync(w.env('coder', 'owner.json'), 'utf8')
      w.write(w.env('coder', 'owner.json'), owner.replace('{', '{"resetting":true,'))
    },
  ],
]

test.each(DOUBTS)('a root that is %s: a new root for this run, the other untouched', async (_, spoil) => {
  const { w, from } = await openEarlier()
  await spoil(w)
  const before = snapshot(w.env('coder'))
  const claim = await w.claim({ mode: 'continue', continueFrom: from })
  expect([claim.env, claim.outcome, claim.conversation]).toEqual([FRESH_ENV, 'created', false])
  expect(claim.continuityLost).not.toBeNull()
  expect(claim.root.path).toBe(w.env(FRESH_ENV))
  expect(JSON.parse(fs.readFileSync(w.env(FRESH_ENV, 'owner.json'), 'utf8'))).toMatchObject({ env: FRESH_ENV, instance: 'coder', run: NEXT })
  expect(snapshot(w.env('coder'))).toEqual(before)
})

test('an unknown run and a busy own root: a new root', async () => {
  const { w } = await openEarlier()
  await holdLock(w.env('coder', 'lock'))
  const claim = await w.claim({ mode: 'continue' })
  expect([claim.env, claim.outcome]).toEqual([FRESH_ENV, 'created'])
})

test('a root that was made for one run is continued under its own name', async () => {
  const w = await openWorld()
  const own = await w.claim({ env: 'coder.r0000000000cc', run: 'r0000000000cc' })
  own.close()
  const from = { run: 'r0000000000cc', business: 'acme', instance: 'coder', role: 'coder', task: null, env: own.env, identity: own.root.identity }
  const claim = await w.claim({ mode: 'continue', continueFrom: from })
  expect([claim.env, claim.outcome, claim.conversation]).toEqual(['coder.r0000000000cc', 'continued', true])
})

test("a continuation that is undone leaves the earlier run's owner", async () => {
  const { w, from } = await openEarlier()
  const before = snapshot(w.root)
  const claim = await w.claim({ mode: 'continue', continueFrom: from })
  await claim.undo()
  expect(snapshot(w.root)).toEqual(before)
})

test("what is not a matter of one root still refuses: the env roots' own directory is a link", async () => {
  const { w, from } = await openEarlier()
  fs.renameSync(join(w.root, 'd', 'envs'), join(w.root, 'moved'))
  fs.symlinkSync(join(w.root, 'moved'), join(w.root, 'd', 'envs'))
  expect((await w.refused({ mode: 'continue', continueFrom: from })).code).toBe('env-root-unsafe')
})
