import { expect, test } from 'vitest'
import { createLog } from '../../src/core/log.ts'
import { createDiskWatch, LOW_BYTES, WATCH_BYTES } from '../../src/daemon/disk-watch.ts'

/** Runs in `hiding` have a part that cannot be seen. */
function watch(sizes: Record<string, number>, meanwhile: (sizes: Record<string, number>) => void = () => undefined) {
  const disk = { free: WATCH_BYTES }
  const hiding = new Set<string>()
  const broken = new Set<string>()
  const ended: string[] = []
  const warned: string[] = []
  let measured = 0
  const look = createDiskWatch({
    log: createLog({ write: (line) => void warned.push((JSON.parse(line) as { msg: string }).msg) }),
    freeBytes: () => Promise.resolve(disk.free),
    runs: () => Object.keys(sizes),
    sizeOf: (run) => {
      measured++
      if (broken.has(run)) return Promise.reject(new Error('ENOENT'))
      return Promise.resolve({ sizeBytes: sizes[run] ?? 0, complete: !hiding.has(run) })
    },
    end(run) {
      ended.push(run)
    },
    pause: () => {
      meanwhile(sizes)
      return Promise.resolve()
    },
  })
  return { disk, hiding, broken, ended, warned, look, sizes, measured: () => measured }
}

test('a disk with room costs no walk and ends nobody', async () => {
  const { look, ended, measured } = watch({ a: 1e12 })
  await look()
  expect([ended, measured()]).toEqual([[], 0])
})

test('while it fills, nobody is ended; once it is almost full, the run whose tree grew most is', async () => {
  const world = watch({ big: 5e9, greedy: 1e6 })
  world.disk.free = WATCH_BYTES - 1
  await world.look()
  expect(world.ended).toEqual([])
  world.sizes.greedy = 2e9
  world.disk.free = LOW_BYTES - 1
  await world.look()
  expect(world.ended).toEqual(['greedy'])
})

test('a disk that fills within one look: the run that still grows is ended, not an innocent larger one', async () => {
  const world = watch({ innocent: 5e9, greedy: 1e6 }, (sizes) => (sizes.greedy = (sizes.greedy ?? 0) + 1e8))
  world.disk.free = LOW_BYTES - 1
  await world.look()
  expect([world.ended, world.measured()]).toEqual([['greedy'], 4])
})

test('a run that came with a large tree between two looks has not grown by all of it', async () => {
  const world = watch({ greedy: 1e6 })
  world.disk.free = WATCH_BYTES - 1
  await world.look()
  Object.assign(world.sizes, { late: 5e9, greedy: 1.6e9 })
  world.disk.free = LOW_BYTES - 1
  await world.look()
  expect(world.ended).toEqual(['greedy'])
})

test('nobody is ended for a disk that somebody else fills', async () => {
  const world = watch({ a: 5e9, b: 1e6 })
  world.disk.free = LOW_BYTES - 1
  await world.look()
  await world.look()
  expect(world.ended).toEqual([])
})

test('who hides what it takes is ended, not an innocent that grew a little; it is no suspect while there is room', async () => {
  const world = watch({ innocent: 5e9, hider: 1e6 })
  world.disk.free = WATCH_BYTES - 1
  world.hiding.add('hider')
  await world.look()
  expect(world.ended).toEqual([])
  world.sizes.innocent = 5.1e9
  world.disk.free = LOW_BYTES - 1
  await world.look()
  expect(world.ended).toEqual(['hider'])
})

test('an innocent that grew a little is not ended for what nobody is seen to take; it is said once', async () => {
  const world = watch({ innocent: 5e9 })
  world.disk.free = WATCH_BYTES - 1
  await world.look()
  world.sizes.innocent = 5.1e9
  world.disk.free = LOW_BYTES - 1
  await world.look()
  world.disk.free = LOW_BYTES / 2
  await world.look()
  expect([world.ended, world.warned]).toEqual([[], ['disk almost full, and no run is known to fill it']])
  world.sizes.innocent = 6.6e9 // the control
  await world.look()
  expect(world.ended).toEqual(['innocent'])
})

test('many runs that fill the disk together: the one that grew most is ended, one at a time', async () => {
  const names = ['a', 'b', 'c', 'd', 'e']
  const world = watch(Object.fromEntries(names.map((name) => [name, 0])))
  world.disk.free = WATCH_BYTES - 1
  await world.look()
  for (const [n, name] of names.entries()) world.sizes[name] = 3e8 + n
  world.disk.free = LOW_BYTES - 1
  await world.look()
  await world.look()
  expect(world.ended).toEqual(['e'])
})

test('who takes a little at each look is ended for all of it', async () => {
  const world = watch({ slow: 0 })
  for (world.disk.free = WATCH_BYTES - 1; world.ended.length === 0 && world.disk.free > 0; world.disk.free -= 1e7) {
    await world.look()
    world.sizes.slow = (world.sizes.slow ?? 0) + 1e7
  }
  expect([world.ended, world.disk.free > LOW_BYTES / 2]).toEqual([['slow'], true])
})

test("what a run took that has ended is nobody else's; who hid nothing new is not ended for it", async () => {
  const world = watch({ gone: 0, innocent: 5e9, hider: 1e6 })
  world.hiding.add('hider')
  world.disk.free = WATCH_BYTES - 1
  await world.look()
  delete world.sizes.gone
  world.disk.free = LOW_BYTES - 1
  await world.look()
  expect(world.ended).toEqual([])
  world.disk.free = LOW_BYTES / 2 // the control
  await world.look()
  expect(world.ended).toEqual(['hider'])
})

test('a disk that somebody filled within one look, and hides it', async () => {
  const world = watch({ innocent: 5e9, hider: 1e6 })
  await world.look()
  world.hiding.add('hider')
  world.disk.free = 0
  await world.look()
  expect(world.ended).toEqual(['hider'])
})

test('a run that grew by most of what the disk lost is ended, though another cannot be measured', async () => {
  const world = watch({ greedy: 1e6, large: 1e9 })
  world.disk.free = WATCH_BYTES - 1
  world.hiding.add('large')
  await world.look()
  world.sizes.greedy = 1.6e9
  world.disk.free = LOW_BYTES - 1
  await world.look()
  expect(world.ended).toEqual(['greedy'])
})

test('a run whose measurement fails is left out, and the others are looked at', async () => {
  const world = watch({ broken: 5e9, greedy: 1e6 })
  world.broken.add('broken')
  world.disk.free = WATCH_BYTES - 1
  await world.look()
  world.sizes.greedy = 2e9
  world.disk.free = LOW_BYTES - 1
  await world.look()
  expect(world.ended).toEqual(['greedy'])
})
