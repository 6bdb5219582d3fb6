import * as fs from 'node:fs'
import { expect, test } from 'vitest'
import { undoCutOffClaim } from '../../src/envroot/cut-off.ts'
import { collectGarbage } from '../../src/envroot/gc.ts'
import { NEXT, openWorld, RUN, snapshot, type World } from './world.ts'

const DAY_MS = 86_400_000
const undo = (w: World, created: boolean) => undoCutOffClaim(w.deps, { business: 'acme', env: 'coder', run: NEXT, created })

/** RUN ended long ago; NEXT is in no record, as a launch that a crash cut off. */
async function openKept(): Promise<World> {
  const w = await openWorld()
  w.deps.endedAt = (run) => (run === RUN ? 0 : null)
  w.deps.now = () => 2 * DAY_MS
  await w.made()
  w.write(w.env('coder', 'workspace', 'stack', 'notes'), 'mine')
  return w
}

const due = async (w: World): Promise<readonly string[]> =>
  (await collectGarbage(w.deps, { business: 'acme', apply: false, keepRunsMs: DAY_MS })).map(({ name }) => name)

test("a kept root is its earlier run's again, as if the cut-off launch had not been", async () => {
  const w = await openKept()
  await w.made({ run: NEXT })
  expect(await due(w)).toEqual([])
  await undo(w, false)
  expect([await due(w), JSON.parse(fs.readFileSync(w.env('coder', 'owner.json'), 'utf8'))]).toEqual([['coder'], expect.objectContaining({ run: RUN })])
  expect(fs.readFileSync(w.env('coder', 'workspace', 'stack', 'notes'), 'utf8')).toBe('mine')
  // once more, as the next host would
  await undo(w, false)
  expect(await due(w)).toEqual(['coder'])
})

test('so is one whose reset the crash cut off: the mark stays, for the next claim to end that', async () => {
  const w = await openKept()
  w.deps.emptyTree = () => Promise.reject(new Error('killed'))
  const died = w.claim({ run: NEXT, mode: 'fresh' })
  // the claim's own undo is what a crash leaves out
  await expect(died).rejects.toThrow('killed')
  const owner = JSON.parse(fs.readFileSync(w.env('coder', 'owner.json'), 'utf8')) as object
  w.write(w.env('coder', 'owner.json'), JSON.stringify({ ...owner, run: NEXT, before: { run: RUN } }))
  expect(await due(w)).toEqual([])
  await undo(w, false)
  expect(JSON.parse(fs.readFileSync(w.env('coder', 'owner.json'), 'utf8'))).toMatchObject({ run: RUN, resetting: true })
  expect(await due(w)).toEqual(['coder'])
})

test('a root that the launch made is gone', async () => {
  const w = await openWorld()
  await w.made({ run: NEXT })
  w.write(w.env('coder', 'workspace', 'stack', 'clone'), 'half')
  await undo(w, true)
  expect(fs.existsSync(w.env('coder'))).toBe(false)
})

test('a root that another run has claimed since is not touched', async () => {
  const w = await openKept()
  await w.made({ run: NEXT })
  await w.made({ run: 'r0000000000cc' })
  const before = snapshot(w.env('coder'))
  await undo(w, false)
  expect(snapshot(w.env('coder'))).toEqual(before)
})
