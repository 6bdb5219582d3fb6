import * as fs from 'node:fs'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { AppError, codeOf } from '../../src/core/errors.ts'
import type { Step } from '../../src/envroot/ports.ts'
import { holdLock, NEXT, openWorld, RUN, snapshot, type World } from './world.ts'

/** Acts once, right before a step. */
function onceBefore(w: World, step: Step, act: () => void): void {
  let done = false
  w.deps.hooks = {
    before: (now) => {
      if (now !== step || done) return
      done = true
      act()
    },
  }
}

const STEPS = ['lock', 'flock', 'inode-check', 'read-owner', 'decide', 'write-owner', 'reset', 'directories', 'done'] as const satisfies readonly Step[]
const REPLACEMENTS = [
  [
    'a link to a tree outside',
    (w: World, path: string) => {
      fs.symlinkSync(join(w.root, 'outside'), path)
    },
  ],
  [
    'another directory',
    (_: World, path: string) => {
      fs.mkdirSync(path, { mode: 0o700 })
    },
  ],
  ['nothing', () => undefined],
] as const

for (const [what, put] of REPLACEMENTS) {
  test.each(STEPS)(`a root replaced by ${what} before the step %s is env-root-swapped: both trees stay as they were`, async (step) => {
    const w = await openWorld()
    await w.made()
    w.write(join(w.root, 'outside', 'precious'), 'precious')
    const before = snapshot(w.env('coder'))
    onceBefore(w, step, () => {
      fs.renameSync(w.env('coder'), join(w.root, 'moved'))
      put(w, w.env('coder'))
    })
    expect((await w.refused({ mode: step === 'reset' ? 'fresh' : 'keep' })).code).toBe('env-root-swapped')
    expect(snapshot(join(w.root, 'moved'))).toEqual(before)
    expect(fs.readdirSync(join(w.root, 'outside'))).toEqual(['precious'])
    if (what === 'another directory') expect(fs.readdirSync(w.env('coder'))).toEqual([])
    await holdLock(join(w.root, 'moved', 'lock')) // nobody holds it any more
  })
}

test.each(['workspace', 'state', 'cache', 'lock'])('%s replaced while the claim goes on is env-root-swapped', async (name) => {
  const w = await openWorld()
  await w.made()
  onceBefore(w, 'done', () => {
    fs.renameSync(w.env('coder', name), join(w.root, 'moved'))
    fs.symlinkSync(join(w.root, 'moved'), w.env('coder', name))
  })
  const refused = await w.refused()
  expect([refused.code, refused.message.startsWith(`${name} was replaced`)]).toEqual(['env-root-swapped', true])
})

test.each(['root', 'workspace', 'state', 'cache', 'lock'])('assertSame sees that the %s was replaced after the claim', async (name) => {
  const w = await openWorld()
  const claim = await w.claim()
  claim.assertSame()
  const path = name === 'root' ? w.env('coder') : w.env('coder', name)
  fs.renameSync(path, join(w.root, 'moved'))
  expect(() => {
    claim.assertSame()
  }).toThrow(`${name} was replaced`)
  fs.symlinkSync(join(w.root, 'moved'), path)
  expect(() => {
    claim.assertSame()
  }).toThrow(`${name} was replaced`)
  fs.unlinkSync(path)
  fs.renameSync(join(w.root, 'moved'), path)
  claim.assertSame()
})

test.each(['flock', 'inode-check'] as const)('a lock file made anew before the step %s: the lock is that of the file with the name', async (step) => {
  const w = await openWorld()
  await w.made()
  onceBefore(w, step, () => {
    fs.unlinkSync(w.env('coder', 'lock'))
    w.write(w.env('coder', 'lock'), '')
  })
  const claim = await w.claim()
  expect(fs.fstatSync(claim.lockFd).ino).toBe(fs.lstatSync(w.env('coder', 'lock')).ino)
  await expect(holdLock(w.env('coder', 'lock'))).rejects.toThrow('locked already')
})

test('a lock file that keeps being made anew ends in a refusal', async () => {
  const w = await openWorld()
  await w.made()
  w.deps.hooks = {
    before: (step) => {
      if (step !== 'inode-check') return
      fs.unlinkSync(w.env('coder', 'lock'))
      w.write(w.env('coder', 'lock'), '')
    },
  }
  const refused = await w.refused()
  expect([refused.code, refused.message.startsWith('lock keeps being replaced')]).toEqual(['env-root-unsafe', true])
})

test('a root that another launch undid between our steps is made again', async () => {
  const w = await openWorld()
  onceBefore(w, 'lock', () => {
    fs.rmdirSync(w.env('coder'))
  })
  const claim = await w.claim()
  expect(claim.outcome).toBe('created')
  claim.assertSame()
})

const run = (n: number): string => `r${n.toString(16).padStart(12, '0')}`
const yielding = { before: () => setImmediate() }

test('of 50 claims at once one wins, on a new root and on one that is there; the others are busy', async () => {
  const w = await openWorld()
  w.deps.hooks = yielding
  for (const outcome of ['created', 'kept']) {
    const results = await Promise.allSettled(Array.from({ length: 50 }, (_, n) => w.claim({ run: run(n) })))
    const won = results.filter((one) => one.status === 'fulfilled').map((one) => one.value)
    expect(won.map((one) => one.outcome)).toEqual([outcome])
    expect(results.filter((one) => one.status === 'rejected').map((one) => codeOf(one.reason))).toEqual(Array.from({ length: 49 }, () => 'env-root-busy'))
    for (const one of won) one.close()
  }
})

test('claims and undos at once: never two holders, no other refusal than busy, and nothing is left in the end', async () => {
  const w = await openWorld()
  w.deps.hooks = yielding
  let holders = 0
  let most = 0
  let wins = 0
  const one = async (n: number): Promise<void> => {
    try {
      const claim = await w.claim({ run: run(n) })
      most = Math.max(most, ++holders)
      wins += 1
      await setImmediate()
      holders -= 1
      await claim.undo()
    } catch (error) {
      if (!(error instanceof AppError) || error.code !== 'env-root-busy') throw error
    }
  }
  const worker = async (n: number): Promise<void> => {
    for (let i = 0; i < 20; i++) await one(n * 100 + i)
  }
  await Promise.all(Array.from({ length: 8 }, (_, n) => worker(n)))
  expect(most).toBe(1)
  expect(wins).toBeGreaterThan(0)
  expect(fs.readdirSync(join(w.root, 'd'))).toEqual([])
})

test('a full disk at the owner is disk-full, and the root is as it was', async () => {
  const w = await openWorld()
  await w.made()
  const before = snapshot(w.root)
  w.deps.hooks = { before: (step) => (step === 'directories' ? Promise.reject(Object.assign(new Error('no space left'), { code: 'ENOSPC' })) : undefined) }
  expect((await w.refused({ run: NEXT })).code).toBe('disk-full')
  expect(snapshot(w.root)).toEqual(before)
  expect(JSON.parse(fs.readFileSync(w.env('coder', 'owner.json'), 'utf8'))).toMatchObject({ run: RUN })
})

test('a root that was replaced before its lock was ours is not even read', async () => {
  const w = await openWorld()
  await w.made()
  const steps: Step[] = []
  const trace = async (): Promise<Step[]> => {
    steps.length = 0
    await w.claim().then(
      (claim) => {
        claim.close()
      },
      () => undefined,
    )
    return [...steps]
  }
  w.deps.hooks = { before: (step) => void steps.push(step) }
  expect(await trace()).toEqual(['pin', 'lock', 'flock', 'inode-check', 'read-owner', 'decide', 'write-owner', 'directories', 'done'])
  w.deps.hooks = {
    before: (step) => {
      steps.push(step)
      if (step === 'inode-check') fs.renameSync(w.env('coder'), join(w.root, 'moved'))
    },
  }
  expect(await trace()).toEqual(['pin', 'lock', 'flock', 'inode-check'])
})
