import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { codeOf } from '../../src/core/errors.ts'
import { collectGarbage } from '../../src/envroot/gc.ts'
import { isEnvRootHeld, listEnvRoots } from '../../src/envroot/list.ts'
import { releaseEnvRoot } from '../../src/envroot/release.ts'
import { holdLock, openWorld, RUN, snapshot, type World } from './world.ts'

const OTHER = 'r0000000000dd'
const coded = async (call: Promise<unknown>): Promise<string> => codeOf(await call.catch((error: unknown) => error))
const DAY_MS = 86_400_000
const UNOPENED = 'it is no directory that can be opened'
const gc = (w: World, apply: boolean) => collectGarbage(w.deps, { business: 'acme', apply, keepRunsMs: DAY_MS })

test('list: one row a root, who owns and holds it, its size, what is unsaved; nothing is made or changed', async () => {
  const w = await openWorld()
  expect(await listEnvRoots(w.deps, 'acme')).toEqual([])
  const held = await w.claim({ run: RUN })
  await w.made({ env: 'pm', instance: 'pm', run: OTHER })
  w.write(w.env('pm', 'workspace', 'notes'), 'x'.repeat(5000))
  fs.mkdirSync(w.env('bare'))
  fs.symlinkSync('/etc', w.env('link'))
  execFileSync('mkfifo', [w.env('fifo')])
  fs.mkdirSync(Buffer.concat([Buffer.from(w.env('')), Buffer.from([0xff])]))
  fs.mkdirSync(w.env('.released'))
  w.deps.unsavedWork = () => Promise.resolve([{ project: 'stack', reason: 'dirty' }])
  const before = snapshot(w.root)
  const rows = await listEnvRoots(w.deps, 'acme')
  const row = { business: 'acme', instance: null, task: null, ownerRun: null, held: false, holderRun: null, sizeBytes: 0, unsaved: [], problem: null }
  expect(rows).toEqual([
    { ...row, env: 'bare', envRoot: w.env('bare') },
    { ...row, env: 'coder', instance: 'coder', ownerRun: RUN, held: true, holderRun: RUN, sizeBytes: expect.any(Number) as number, envRoot: w.env('coder') },
    { ...row, env: 'fifo', envRoot: w.env('fifo'), problem: UNOPENED },
    { ...row, env: 'link', envRoot: w.env('link'), problem: UNOPENED },
    {
      ...row,
      env: 'pm',
      instance: 'pm',
      ownerRun: OTHER,
      sizeBytes: expect.any(Number) as number,
      unsaved: [{ project: 'stack', reason: 'dirty' }],
      envRoot: w.env('pm'),
    },
  ])
  expect(rows.find((one) => one.env === 'pm')?.sizeBytes).toBeGreaterThan(5000)
  expect(snapshot(w.root)).toEqual(before)
  expect([isEnvRootHeld(w.deps, 'acme', 'coder'), isEnvRootHeld(w.deps, 'acme', 'pm'), isEnvRootHeld(w.deps, 'acme', 'nope')]).toEqual([true, false, false])
  held.close()
  expect(isEnvRootHeld(w.deps, 'acme', 'coder')).toBe(false)
})

test('list: an env root whose look fails says so in its row, and hides no other', async () => {
  const w = await openWorld()
  for (const env of ['a', 'b', 'c']) await w.made({ env, instance: env, run: OTHER })
  const holderOf = w.deps.holderOf
  w.deps.holderOf = (business, env, run) => {
    if (env === 'b') throw new Error('EIO: broken')
    return holderOf(business, env, run)
  }
  const rows = await listEnvRoots(w.deps, 'acme')
  expect(rows.map(({ env, instance, problem }) => [env, instance, problem])).toEqual([
    ['a', 'a', null],
    ['b', null, 'EIO: broken'],
    ['c', 'c', null],
  ])
})

test('listing never makes a claim busy', async () => {
  const w = await openWorld()
  await w.made()
  w.deps.hooks = { before: () => setImmediate() }
  let over = false
  const lists = async (): Promise<void> => {
    while (!over) {
      await listEnvRoots(w.deps, 'acme')
      await setImmediate()
    }
  }
  const listing = lists()
  for (let n = 0; n < 50; n++) await w.made()
  over = true
  await listing
})

test('release moves a root aside whole, whoever owns it, and the next launch makes a new one', async () => {
  const w = await openWorld()
  w.write(w.env('coder', 'workspace', 'thesis'), 'years of work')
  const before = snapshot(w.env('coder'))
  expect((await w.refused()).code).toBe('env-root-unowned')
  const released = await releaseEnvRoot(w.deps, { business: 'acme', env: 'coder' })
  expect(released.path).toBe(w.env('.released', 'coder-1970-01-01T001640.000Z'))
  expect(snapshot(released.path)).toEqual(before)
  expect(fs.existsSync(w.env('coder'))).toBe(false)
  await w.made()
  expect((await releaseEnvRoot(w.deps, { business: 'acme', env: 'coder' })).path).toBe(w.env('.released', 'coder-1970-01-01T001640.000Z.1'))
  expect(snapshot(released.path)).toEqual(before)
  expect((await w.claim()).outcome).toBe('created')
})

test('release refuses what is held, what is not there, and what is no name of an env root', async () => {
  const w = await openWorld()
  await w.made()
  const holder = await holdLock(w.env('coder', 'lock'))
  const before = snapshot(w.root)
  expect(await coded(releaseEnvRoot(w.deps, { business: 'acme', env: 'coder' }))).toBe('env-root-busy')
  for (const env of ['pm', '.released', '..', '../acme', '', 'a\0b', '__proto__'])
    expect(await coded(releaseEnvRoot(w.deps, { business: 'acme', env }))).toBe('env-not-found')
  expect(snapshot(w.root)).toEqual(before)
  await holder.end()
  expect((await releaseEnvRoot(w.deps, { business: 'acme', env: 'coder' })).env).toBe('coder')
})

/** coder's root was used by RUN, which ended long ago; its run directory has what an agent left. */
async function openUsed(): Promise<World> {
  const w = await openWorld()
  await w.made()
  w.write(w.env('coder', 'workspace', 'notes'), 'x')
  w.write(w.env('coder', 'cache', 'npm', 'thing'), 'x')
  const home = join(w.root, 'd', 'launches', 'acme', RUN, 'home')
  w.write(join(home, 'deep', 'file'), 'x')
  fs.symlinkSync(w.write(join(w.root, 'outside', 'precious'), 'precious'), join(home, 'link'))
  fs.writeFileSync(Buffer.concat([Buffer.from(`${home}/`), Buffer.from([0xff, 0x0a])]), '')
  fs.chmodSync(join(home, 'deep'), 0o500)
  w.deps.now = () => 10 * DAY_MS
  w.deps.endedAt = (run) => (run === RUN ? 8 * DAY_MS : null)
  return w
}

test('gc says what is due and removes it only when told to', async () => {
  const w = await openUsed()
  const before = snapshot(w.root)
  const rows = (await gc(w, false)).map((row) => [row.kind, row.name, row.action])
  expect(rows).toEqual([
    ['run-directory', RUN, 'reclaim'],
    ['env-root', 'coder', 'reclaim'],
  ])
  expect(snapshot(w.root)).toEqual(before)
  expect((await gc(w, true)).map((row) => row.action)).toEqual(['removed', 'removed'])
  expect(fs.readdirSync(w.env(''))).toEqual([])
  expect(fs.readdirSync(join(w.root, 'd', 'launches', 'acme'))).toEqual([])
  expect(fs.readFileSync(join(w.root, 'outside', 'precious'), 'utf8')).toBe('precious')
  expect(await gc(w, true)).toEqual([])
})

test.each([
  [
    'ended lately',
    (w: World) => {
      w.deps.endedAt = () => 9.5 * DAY_MS
    },
  ],
  [
    'not ended, or not known',
    (w: World) => {
      w.deps.endedAt = () => null
    },
  ],
])('gc leaves what a run left that is %s', async (_, change) => {
  const w = await openUsed()
  change(w)
  const before = snapshot(w.root)
  expect(await gc(w, true)).toEqual([])
  expect(snapshot(w.root)).toEqual(before)
})

test('gc never touches a held, foreign or unowned root', async () => {
  const w = await openUsed()
  fs.renameSync(join(w.root, 'd', 'launches'), join(w.root, 'd', 'aside'))
  const owner = fs.readFileSync(w.env('coder', 'owner.json'), 'utf8')
  const holder = await holdLock(w.env('coder', 'lock'))
  const before = snapshot(w.root)
  expect(await gc(w, true)).toMatchObject([{ kind: 'env-root', name: 'coder', action: 'kept', why: `held by a running execution (run ${RUN})` }])
  expect(snapshot(w.root)).toEqual(before)
  await holder.end()
  for (const text of [owner.replace('"env":"coder"', '"env":"pm"'), owner.replace('mosaic', 'puppet'), '{"torn', '']) {
    fs.writeFileSync(w.env('coder', 'owner.json'), text)
    expect(await gc(w, true)).toEqual([])
    expect(fs.existsSync(w.env('coder', 'workspace', 'notes'))).toBe(true)
  }
  fs.writeFileSync(w.env('coder', 'owner.json'), owner)
  expect((await gc(w, true)).map((row) => row.action)).toEqual(['removed'])
})

test('gc keeps a root with unsaved work, says why, and reclaims its cache alone', async () => {
  const w = await openUsed()
  w.deps.unsavedWork = () => Promise.resolve([{ project: 'stack', reason: 'ahead' }])
  const rows = (await gc(w, true)).filter((row) => row.kind !== 'run-directory')
  expect(rows.map((row) => [row.kind, row.action, row.why])).toEqual([
    ['env-root', 'kept', 'stack: ahead'],
    ['cache', 'removed', null],
  ])
  expect(fs.readdirSync(w.env('coder', 'cache'))).toEqual([])
  expect(fs.existsSync(w.env('coder', 'workspace', 'notes'))).toBe(true)
  expect((await w.claim()).outcome).toBe('kept')
})

test('gc that fails half-way says so, and leaves a root that is still ours, marked; the next one ends it', async () => {
  const w = await openUsed()
  const { emptyTree } = w.deps
  w.deps.emptyTree = () => Promise.reject(new Error('the power went'))
  expect((await gc(w, true)).map((row) => [row.action, row.why])).toEqual([
    ['kept', 'the power went'],
    ['kept', 'the power went'],
  ])
  expect(JSON.parse(fs.readFileSync(w.env('coder', 'owner.json'), 'utf8'))).toMatchObject({ run: RUN, resetting: true })
  w.deps.emptyTree = emptyTree
  w.deps.unsavedWork = () => Promise.resolve([{ project: 'stack', reason: 'dirty' }])
  expect((await gc(w, true)).map((row) => row.action)).toEqual(['removed', 'removed'])
  expect(fs.readdirSync(w.env(''))).toEqual([])
})
