import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { AppError } from '../../src/core/errors.ts'
import { emptyTree, holdLock, NEXT, openWorld, RUN, snapshot, type World } from './world.ts'

const ownerOf = (w: World, env = 'coder'): unknown => JSON.parse(fs.readFileSync(w.env(env, 'owner.json'), 'utf8'))
const OWNER = { business: 'acme', env: 'coder', instance: 'coder', task: null, run: RUN, managedBy: 'mosaic' }

test('an absent root is made: 0700, an empty 0600 lock that is held, our owner, three directories', async () => {
  const w = await openWorld()
  const claim = await w.claim()
  expect([claim.outcome, claim.env, claim.conversation, claim.continuityLost]).toEqual(['created', 'coder', false, null])
  expect(fs.readdirSync(w.env('coder')).sort()).toEqual(['cache', 'lock', 'owner.json', 'state', 'workspace'])
  expect([fs.statSync(w.env('coder')).mode & 0o777, fs.statSync(w.env('coder', 'lock')).mode & 0o777, fs.statSync(w.env('coder', 'lock')).size]).toEqual([
    0o700, 0o600, 0,
  ])
  expect(ownerOf(w)).toEqual({ ...OWNER, run: NEXT })
  expect(claim.root.path).toBe(w.env('coder'))
  claim.assertSame()
  await expect(holdLock(w.env('coder', 'lock'))).rejects.toThrow('locked already')
  claim.close()
  await holdLock(w.env('coder', 'lock'))
})

test.each([
  ['empty', ''],
  ['half-written', '{"business":"acme","env":"co'],
  ['not JSON', 'hello'],
  ['NULs, as a lost power leaves', '\u0000\u0000'],
])('a torn owner (%s) beside a lock is adopted', async (_, text) => {
  const w = await openWorld()
  w.write(w.env('coder', 'owner.json'), text)
  w.write(w.env('coder', 'owner.json.new'), '{"bus')
  w.write(w.env('coder', 'lock'), '')
  expect((await w.claim()).outcome).toBe('created')
  expect(ownerOf(w)).toEqual({ ...OWNER, run: NEXT })
  expect(fs.existsSync(w.env('coder', 'owner.json.new'))).toBe(false)
})

test('ours and free: kept as it is, owned by the new run', async () => {
  const w = await openWorld()
  await w.made()
  w.write(w.env('coder', 'workspace', 'notes'), 'mine')
  const before = fs.lstatSync(w.env('coder', 'lock')).ino
  expect((await w.claim()).outcome).toBe('kept')
  expect(fs.readFileSync(w.env('coder', 'workspace', 'notes'), 'utf8')).toBe('mine')
  expect(ownerOf(w)).toEqual({ ...OWNER, run: NEXT, before: { run: RUN } })
  expect(fs.lstatSync(w.env('coder', 'lock')).ino).toBe(before)
})

test('fresh: everything but lock and owner goes, no link is followed, the root stays', async () => {
  const w = await openWorld()
  await w.made()
  const outside = w.write(join(w.root, 'outside', 'precious'), 'precious')
  const workspace = w.env('coder', 'workspace')
  fs.symlinkSync(join(w.root, 'outside'), join(workspace, 'link'))
  w.write(join(workspace, 'deep', 'er', 'file'), 'x')
  w.write(w.env('coder', 'cache', 'thing'), 'x')
  fs.mkdirSync(Buffer.concat([Buffer.from(`${workspace}/`), Buffer.from([0xff, 0x0a, 0x2a])]))
  fs.chmodSync(join(workspace, 'deep'), 0o500)
  const inodes = ['', 'lock'].map((name) => fs.lstatSync(w.env('coder', name)).ino)
  const claim = await w.claim({ mode: 'fresh' })
  expect(claim.outcome).toBe('reset')
  expect(['', 'lock'].map((name) => fs.lstatSync(w.env('coder', name)).ino)).toEqual(inodes)
  expect(fs.readdirSync(workspace)).toEqual([])
  expect(fs.readdirSync(w.env('coder')).sort()).toEqual(['cache', 'lock', 'owner.json', 'state', 'workspace'])
  expect(ownerOf(w)).toEqual({ ...OWNER, run: NEXT, before: { run: RUN } })
  expect(fs.readFileSync(outside, 'utf8')).toBe('precious')
})

test('fresh with work that would be lost is refused, listing it, and changes nothing; discard goes on', async () => {
  const w = await openWorld()
  await w.made()
  w.write(w.env('coder', 'workspace', 'notes'), 'mine')
  w.deps.unsavedWork = () =>
    Promise.resolve([
      { project: 'stack', reason: 'dirty' },
      { project: 'web', reason: 'ahead' },
    ])
  const before = snapshot(w.root)
  const refused = await w.refused({ mode: 'fresh' })
  expect([refused.code, refused.message]).toEqual(['env-root-unsaved', 'stack: dirty, web: ahead'])
  expect(refused.hint).toContain('mosaic launch coder --fresh --discard')
  expect(snapshot(w.root)).toEqual(before)
  expect((await w.claim({ mode: 'fresh', discard: true })).outcome).toBe('reset')
})

test('a reset that was cut off is ended by the next claim, and never taken for a tree to keep', async () => {
  const w = await openWorld()
  await w.made()
  w.write(w.env('coder', 'workspace', 'half'), 'x')
  w.deps.emptyTree = () => Promise.reject(new Error('the power went'))
  await expect(w.claim({ mode: 'fresh' })).rejects.toThrow('the power went')
  expect(ownerOf(w)).toEqual({ ...OWNER, resetting: true })
  w.deps.emptyTree = emptyTree
  expect((await w.claim({ mode: 'keep' })).outcome).toBe('reset')
  expect(ownerOf(w)).toEqual({ ...OWNER, run: NEXT, before: { run: RUN } })
  expect(fs.readdirSync(w.env('coder', 'workspace'))).toEqual([])
})

test('held by another process: busy, naming the run of the owner or of the store; untouched; free once it is killed', async () => {
  const w = await openWorld()
  await w.made()
  const holder = await holdLock(w.env('coder', 'lock'))
  const before = snapshot(w.root)
  for (const mode of ['keep', 'fresh'] as const) {
    const refused = await w.refused({ mode })
    expect([refused.code, refused.message]).toEqual(['env-root-busy', `held by a running execution (run ${RUN})`])
  }
  w.deps.holderOf = () => 'r0000000000cc'
  expect((await w.refused()).message).toBe('held by a running execution (run r0000000000cc)')
  w.deps.holderOf = () => null
  fs.writeFileSync(w.env('coder', 'owner.json'), '')
  expect((await w.refused()).message).toBe('held by a running execution')
  fs.writeFileSync(w.env('coder', 'owner.json'), JSON.stringify(OWNER))
  expect(Object.keys(snapshot(w.root))).toEqual(Object.keys(before))
  await holder.end('SIGKILL')
  expect((await w.claim()).outcome).toBe('kept')
})

test('a reset that is cancelled is told at once, stays marked, and is free', async () => {
  const w = await openWorld()
  await w.made()
  w.write(w.env('coder', 'workspace', 'notes'), 'mine')
  const cancel = new AbortController()
  w.deps.signal = cancel.signal
  w.deps.emptyTree = async (_dir, _keep, signal) => {
    cancel.abort(new AppError('interrupted', 'stopped'))
    signal?.throwIfAborted()
    await new Promise(() => undefined)
  }
  expect((await w.refused({ mode: 'fresh' })).code).toBe('interrupted')
  expect(ownerOf(w)).toEqual({ ...OWNER, resetting: true })
  w.deps.emptyTree = emptyTree
  // nothing has been done yet of one that comes too late
  const before = snapshot(w.root)
  expect((await w.refused()).code).toBe('interrupted')
  expect(snapshot(w.root)).toEqual(before)
  delete w.deps.signal
  expect((await w.claim()).outcome).toBe('reset')
})

test('a busy foreign root is busy', async () => {
  const w = await openWorld()
  await w.made()
  fs.writeFileSync(w.env('coder', 'owner.json'), JSON.stringify({ ...OWNER, env: 'somebody-else' }))
  const holder = await holdLock(w.env('coder', 'lock'))
  expect((await w.refused()).code).toBe('env-root-busy')
  await holder.end()
  expect((await w.refused()).code).toBe('env-root-foreign')
})

test('a lock file that was replaced while held does not let a second one in', async () => {
  const w = await openWorld()
  const first = await w.claim({ run: RUN })
  fs.unlinkSync(w.env('coder', 'lock'))
  w.deps.holderOf = () => RUN // the store still has it live
  expect((await w.refused()).message).toBe(`held by a running execution (run ${RUN})`)
  expect(() => {
    first.assertSame()
  }).toThrow('lock was replaced')
  w.deps.holderOf = () => null
  expect((await w.claim()).outcome).toBe('kept')
})

test.each([
  ['another env', { env: 'somebody-else', instance: 'somebody-else' }, 'belongs to somebody-else'],
  ['another business', { business: 'other' }, 'belongs to other/coder'],
  ['another instance', { instance: 'pm' }, 'belongs to acme/pm'],
  ['another task', { task: 't-1' }, 'belongs to acme/coder'],
  ['another program', { managedBy: 'puppet', env: undefined, instance: undefined }, 'belongs to puppet'],
  ['a later version', { task: { id: 't-1' } }, 'belongs to coder'],
])('the owner of %s is foreign, named, and untouched', async (_, change, message) => {
  const w = await openWorld()
  await w.made()
  fs.writeFileSync(w.env('coder', 'owner.json'), JSON.stringify({ ...OWNER, ...change }))
  const before = snapshot(w.root)
  for (const mode of ['keep', 'fresh'] as const) {
    const refused = await w.refused({ mode, discard: true })
    expect([refused.code, refused.message]).toEqual(['env-root-foreign', message])
  }
  expect(snapshot(w.root)).toEqual(before)
  fs.writeFileSync(w.env('coder', 'owner.json'), JSON.stringify(OWNER))
  expect((await w.claim()).outcome).toBe('kept')
})

test.each(['null', '[]', '12', '"x"', '{}'])('an owner that is the JSON %s is nobody we know', async (text) => {
  const w = await openWorld()
  w.write(w.env('coder', 'owner.json'), text)
  expect((await w.refused()).code).toBe('env-root-foreign')
})

test('content without an owner, or with a torn one, is unowned; nothing changes; the hint is the way out', async () => {
  const w = await openWorld()
  w.write(w.env('coder', 'workspace', 'thesis'), 'years of work')
  const before = snapshot(w.root)
  for (const mode of ['keep', 'fresh'] as const) {
    const refused = await w.refused({ mode, discard: true })
    expect(refused.code).toBe('env-root-unowned')
    expect(refused.hint).toContain('mosaic env release coder')
    expect(snapshot(w.root)).toEqual(before)
  }
  w.write(w.env('coder', 'owner.json'), '{"bu')
  expect((await w.refused()).code).toBe('env-root-unowned')
})

const THINGS: readonly (readonly [string, (w: World, path: string) => void])[] = [
  [
    'a link',
    (w, path) => {
      fs.symlinkSync(w.write(join(w.root, 'victim'), 'untouched'), path)
    },
  ],
  [
    'a dangling link',
    (w, path) => {
      fs.symlinkSync(join(w.root, 'not-there'), path)
    },
  ],
  [
    'a FIFO',
    (_, path) => {
      execFileSync('mkfifo', ['-m', '600', path])
    },
  ],
  [
    'a hard link',
    (w, path) => {
      fs.linkSync(w.write(join(w.root, 'victim'), 'untouched'), path)
    },
  ],
  [
    'a directory',
    (_, path) => {
      fs.mkdirSync(path)
    },
  ],
  [
    'unreadable',
    (w, path) => {
      w.write(path, '{}')
      fs.chmodSync(path, 0)
    },
  ],
]
const FILES = ['lock', 'owner.json', 'owner.json.new']

for (const name of FILES) {
  test.each(THINGS)(`${name} that is %s is unsafe, named, and nothing is written through it`, { timeout: 10_000 }, async (_, make) => {
    const w = await openWorld()
    await w.made()
    fs.rmSync(w.env('coder', name), { force: true })
    make(w, w.env('coder', name))
    const before = fs.readdirSync(w.env('coder')).sort()
    for (const mode of ['keep', 'fresh'] as const) {
      const refused = await w.refused({ mode, discard: true })
      expect([refused.code, refused.message.startsWith(`${name} `)]).toEqual(['env-root-unsafe', true])
    }
    expect(fs.readdirSync(w.env('coder')).sort()).toEqual(before)
    expect(fs.existsSync(join(w.root, 'not-there'))).toBe(false)
    if (fs.existsSync(join(w.root, 'victim'))) expect(fs.readFileSync(join(w.root, 'victim'), 'utf8')).toBe('untouched')
    fs.rmSync(w.env('coder', name), { recursive: true })
    if (name === 'owner.json') fs.writeFileSync(w.env('coder', name), JSON.stringify(OWNER))
    expect((await w.claim()).outcome).toBe('kept')
  })
}

test('an owner over 64 KiB is unsafe; one of just that size is read', async () => {
  const w = await openWorld()
  await w.made()
  const text = JSON.stringify(OWNER)
  fs.writeFileSync(w.env('coder', 'owner.json'), text.padEnd(64 * 1024 + 1))
  const refused = await w.refused()
  expect([refused.code, refused.message.startsWith('owner.json is over 64 KiB')]).toEqual(['env-root-unsafe', true])
  fs.writeFileSync(w.env('coder', 'owner.json'), text.padEnd(64 * 1024))
  expect((await w.claim()).outcome).toBe('kept')
})

for (const name of ['workspace', 'state', 'cache']) {
  test.each(THINGS.slice(0, 3))(`${name} that is %s is unsafe, also for a reset`, { timeout: 10_000 }, async (_, make) => {
    const w = await openWorld()
    await w.made()
    fs.rmdirSync(w.env('coder', name))
    make(w, w.env('coder', name))
    const before = snapshot(w.env('coder'))
    for (const mode of ['keep', 'fresh'] as const) {
      const refused = await w.refused({ mode, discard: true })
      expect([refused.code, refused.message.startsWith(`${name} `)]).toEqual(['env-root-unsafe', true])
    }
    expect(snapshot(w.env('coder'))).toEqual(before)
    fs.unlinkSync(w.env('coder', name))
    expect((await w.claim()).outcome).toBe('kept')
  })
}

test('a clone whose folder is a link is unsafe; only discarding it goes on, and follows no link', async () => {
  const w = await openWorld()
  await w.made()
  fs.mkdirSync(join(w.root, 'outside'))
  fs.symlinkSync(join(w.root, 'outside'), w.env('coder', 'workspace', 'stack'))
  for (const mode of ['keep', 'fresh'] as const) {
    const refused = await w.refused({ mode })
    expect([refused.code, refused.message.startsWith('workspace/stack ')]).toEqual(['env-root-unsafe', true])
  }
  expect((await w.claim({ mode: 'fresh', discard: true })).outcome).toBe('reset')
  expect(fs.existsSync(join(w.root, 'outside'))).toBe(true)
})

test.each([
  ['envs', (w: World) => join(w.root, 'd', 'envs')],
  ['acme', (w: World) => join(w.root, 'd', 'envs', 'acme')],
  ['root', (w: World) => w.env('coder')],
])('a link or a FIFO as %s is unsafe and nothing is made behind it', { timeout: 10_000 }, async (name, toPath) => {
  const w = await openWorld()
  await w.made()
  const path = toPath(w)
  fs.renameSync(path, `${w.root}/moved`)
  const before = snapshot(`${w.root}/moved`)
  for (const make of [
    () => {
      fs.symlinkSync(`${w.root}/moved`, path)
    },
    () => {
      execFileSync('mkfifo', [path])
    },
  ]) {
    make()
    const refused = await w.refused()
    expect([refused.code, refused.message.startsWith(`${name} `)]).toEqual(['env-root-unsafe', true])
    fs.unlinkSync(path)
  }
  expect(snapshot(`${w.root}/moved`)).toEqual(before)
  fs.renameSync(`${w.root}/moved`, path)
  expect((await w.claim()).outcome).toBe('kept')
})

test('a root that cannot be listed is unsafe', async () => {
  const w = await openWorld()
  await w.made()
  fs.chmodSync(w.env('coder'), 0o300)
  expect((await w.refused()).code).toBe('env-root-unsafe')
  fs.chmodSync(w.env('coder'), 0o700)
  expect((await w.claim()).outcome).toBe('kept')
})
