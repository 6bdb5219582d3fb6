import { expect, test } from 'vitest'
import { silentLog } from '../../src/core/log.ts'
import { createDiskWatch, LOW_BYTES, WATCH_BYTES } from '../../src/daemon/disk-watch.ts'

function watch(sizes: Record<string, number>, meanwhile: (sizes: Record<string, number>) => void = () => undefined) {
  const disk = { free: WATCH_BYTES }
  const ended: string[] = []
  let measured = 0
  const look = createDiskWatch({
    log: silentLog,
    freeBytes: () => Promise.resolve(disk.free),
    runs: () => Object.keys(sizes),
    sizeOf: (run) => {
      measured++
      return Promise.resolve(sizes[run] ?? 0)
    },
    end(run) {
      ended.push(run)
    },
    pause: () => {
      meanwhile(sizes)
      return Promise.resolve()
    },
  })
  return { disk, ended, look, sizes, measured: () => measured }
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
  const world = watch({ innocent: 5e9, greedy: 1e6 }, (sizes) => (sizes.greedy = (sizes.greedy ?? 0) + 1e6))
  await world.look()
  world.sizes.greedy = 1.6e9
  world.disk.free = LOW_BYTES - 1
  await world.look()
  expect([world.ended, world.measured()]).toEqual([['greedy'], 4])
})

test('a run that came with a large tree between two looks has not grown by all of it', async () => {
  const world = watch({ greedy: 1e6 })
  world.disk.free = WATCH_BYTES - 1
  await world.look()
  Object.assign(world.sizes, { late: 5e9, greedy: 2e6 })
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
