import * as fs from 'node:fs'
import { dirname } from 'node:path'
import { expect, test } from 'vitest'
import { collectGarbage } from '../../src/envroot/gc.ts'
import type { Step } from '../../src/envroot/ports.ts'
import { NEXT, openWorld, RUN, snapshot, type World } from './world.ts'

const DAY_MS = 86_400_000
const STEPS: readonly Step[] = ['pin', 'lock', 'flock', 'inode-check', 'read-owner', 'decide', 'reset', 'write-owner', 'directories', 'done']
const CODES = { ENOSPC: 'disk-full', EDQUOT: 'disk-full', EROFS: 'env-root-unsafe' } as const

const failing = (w: World, at: Step, errno: string): { passed: boolean } => {
  const seen = { passed: false }
  w.deps.hooks = {
    before: (step) => {
      if (step !== at) return undefined
      seen.passed = true
      return Promise.reject(Object.assign(new Error(`${errno}: write`), { code: errno }))
    },
  }
  return seen
}

const MATRIX = STEPS.flatMap((step) => Object.entries(CODES).map(([errno, code]) => [step, errno, code] as const))

test.each(MATRIX)('a claim that meets its disk at %s with %s is refused as %s, and leaves what was there', async (step, errno, code) => {
  for (const start of ['absent', 'ours'] as const) {
    const w = await openWorld()
    if (start === 'ours') {
      await w.made()
      w.write(w.env('coder', 'workspace', 'notes'), 'mine')
    }
    const mode = start === 'ours' && step !== 'reset' ? 'keep' : 'fresh'
    const before = snapshot(w.root)
    const seen = failing(w, step, errno)
    if (start === 'absent' && step === 'reset') continue // nothing is reset there
    expect((await w.refused({ mode })).code).toBe(code)
    expect(seen.passed).toBe(true)
    expect(snapshot(w.root)).toEqual(before)
    delete w.deps.hooks
    expect((await w.claim({ mode })).outcome).toBe(start === 'absent' ? 'created' : mode === 'fresh' ? 'reset' : 'kept') // the control
  }
})

/** The kernel itself refuses each thing that a claim makes: the directory above is closed right before that step. */
test.each([
  ['pin', (w: World) => dirname(dirname(w.env('')))],
  ['lock', (w: World) => w.env('coder')],
  ['write-owner', (w: World) => w.env('coder')],
  ['directories', (w: World) => w.env('coder')],
] as const)('a directory in which nothing can be made at %s costs the claim, and nothing else', async (at, where) => {
  const w = await openWorld()
  if (at !== 'pin') fs.mkdirSync(w.env('coder'), { recursive: true, mode: 0o700 })
  const before = snapshot(w.root)
  let closed: string | undefined
  w.deps.hooks = {
    before: (step) => {
      if (step !== at || closed !== undefined) return
      closed = where(w)
      fs.chmodSync(closed, 0o500)
    },
  }
  const refused = await w.refused()
  if (closed === undefined) throw new Error('the step was not passed')
  expect(refused.code).toBe('env-root-unsafe')
  fs.chmodSync(closed, 0o700)
  delete w.deps.hooks
  // what it made before the directory was closed could not be removed then; nobody has worked in it
  const left = Object.keys(snapshot(w.root)).filter((path) => !Object.hasOwn(before, path))
  expect(left.every((path) => ['/d/envs/acme/coder/lock', '/d/envs/acme/coder/owner.json'].includes(path))).toBe(true)
  expect((await w.claim()).outcome).not.toBe('reset')
})

test('a clock that is set back a day neither frees nor takes a root, and reclaims nothing early', async () => {
  const w = await openWorld()
  await w.made()
  w.write(w.env('coder', 'workspace', 'notes'), 'mine')
  const owner = fs.readFileSync(w.env('coder', 'owner.json'), 'utf8')
  let now = 100 * DAY_MS
  w.deps.now = () => now
  const ended = now - DAY_MS / 2
  w.deps.endedAt = (run) => (run === RUN ? ended : null)
  const gc = () => collectGarbage(w.deps, { business: 'acme', apply: true, keepRunsMs: DAY_MS / 4 })
  now -= DAY_MS // the end is in the future now
  const before = snapshot(w.root)
  expect(await gc()).toEqual([])
  expect(snapshot(w.root)).toEqual(before)
  const held = await w.claim({ run: NEXT })
  expect((await w.refused({ run: RUN })).code).toBe('env-root-busy')
  await held.undo()
  expect(fs.readFileSync(w.env('coder', 'owner.json'), 'utf8')).toBe(owner)
  now += DAY_MS
  expect((await gc()).map(({ action }) => action)).toEqual(['removed']) // the control
})
