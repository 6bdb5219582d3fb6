import { spawn } from 'node:child_process'
import { once } from 'node:events'
import * as fs from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { holdLock, openWorld, snapshot, type World } from './world.ts'

const STARTS: readonly (readonly [string, (w: World) => unknown])[] = [
  ['nothing at all', () => undefined],
  ['an empty root', (w) => fs.mkdirSync(w.env('coder'), { recursive: true, mode: 0o700 })],
  ['only a lock', (w) => w.write(w.env('coder', 'lock'), '')],
  ['a torn owner and its temporary', (w) => [w.write(w.env('coder', 'owner.json'), '{"busi'), w.write(w.env('coder', 'owner.json.new'), '{"b')]],
  ['a root of ours', (w) => w.made()],
  [
    'a root of ours with work',
    async (w) => {
      await w.made()
      w.write(w.env('coder', 'workspace', 'stack', 'notes'), 'mine')
    },
  ],
  [
    'a root of ours without state and cache',
    async (w) => {
      await w.made()
      fs.rmdirSync(w.env('coder', 'state'))
      fs.rmdirSync(w.env('coder', 'cache'))
    },
  ],
  [
    'a root of ours without a lock',
    async (w) => {
      await w.made()
      fs.unlinkSync(w.env('coder', 'lock'))
    },
  ],
]

test.each(STARTS)('undo leaves %s as it was, whatever the launch has put into what it made', async (_, start) => {
  const w = await openWorld()
  await start(w)
  const before = snapshot(w.root)
  const claim = await w.claim()
  expect(snapshot(w.root)).not.toEqual(before)
  if (!Object.hasOwn(before, '/d/envs/acme/coder/state')) {
    w.write(w.env('coder', 'state', 'deep', 'file'), 'x')
    fs.chmodSync(w.env('coder', 'state', 'deep'), 0o500)
  }
  await claim.undo()
  expect(snapshot(w.root)).toEqual(before)
  if (fs.existsSync(w.env('coder', 'lock'))) await (await holdLock(w.env('coder', 'lock'))).end()
  claim.close()
  expect(['created', 'kept']).toContain((await w.claim()).outcome)
})

test('undo after a reset puts the earlier owner back, unmarked: what it emptied stays empty', async () => {
  const w = await openWorld()
  await w.made()
  w.write(w.env('coder', 'workspace', 'notes'), 'mine')
  const owner = fs.readFileSync(w.env('coder', 'owner.json'), 'utf8')
  const claim = await w.claim({ mode: 'fresh' })
  await claim.undo()
  expect(fs.readFileSync(w.env('coder', 'owner.json'), 'utf8')).toBe(owner)
  expect(fs.readdirSync(w.env('coder')).sort()).toEqual(['lock', 'owner.json'])
  expect((await w.claim()).outcome).toBe('kept')
})

test('undo in a root that was moved away works on that tree, and on nothing that has its name now', async () => {
  const w = await openWorld()
  await w.made()
  const before = snapshot(w.env('coder'))
  const claim = await w.claim()
  fs.renameSync(w.env('coder'), join(w.root, 'moved'))
  w.write(w.env('coder', 'owner.json'), 'another')
  await claim.undo()
  expect(snapshot(join(w.root, 'moved'))).toEqual(before)
  expect(fs.readFileSync(w.env('coder', 'owner.json'), 'utf8')).toBe('another')
})

test('close lets go at once and twice; descriptors do not pile up', async () => {
  const w = await openWorld()
  const open = (): number => fs.readdirSync('/proc/self/fd').length
  await w.made()
  const before = open()
  for (let n = 0; n < 20; n++) {
    const claim = await w.claim()
    if (n % 2 === 0) claim.close()
    else await claim.undo()
    claim.close()
  }
  await holdLock(w.env('coder', 'lock')).then((holder) => holder.end())
  fs.writeFileSync(w.env('coder', 'owner.json'), '{}')
  for (let n = 0; n < 5; n++) await w.refused()
  expect(open()).toBe(before)
})

test('a process that got the descriptor holds the lock on after our close, until it is killed', async () => {
  const w = await openWorld()
  const claim = await w.claim()
  const child = spawn('cat', { stdio: ['pipe', 'pipe', 'inherit', claim.lockFd], timeout: 20_000 })
  await once(child, 'spawn')
  claim.close()
  expect((await w.refused()).code).toBe('env-root-busy')
  child.kill('SIGKILL')
  await once(child, 'close')
  expect((await w.claim()).outcome).toBe('kept')
})

test('undo removes a root that it made, but no empty directory that has its name now', async () => {
  const w = await openWorld()
  const claim = await w.claim()
  fs.renameSync(w.env('coder'), join(w.root, 'moved'))
  fs.mkdirSync(w.env('coder'))
  await claim.undo()
  expect(fs.readdirSync(w.env(''))).toEqual(['coder'])
  expect(fs.readdirSync(join(w.root, 'moved'))).toEqual([])
  await (await w.claim({ env: 'pm', instance: 'pm' })).undo() // the control
  expect(fs.readdirSync(w.env(''))).toEqual(['coder'])
})
