import { expect, test } from 'vitest'
import { silentLog } from '../../src/core/log.ts'
import { createDiskWatch, LOW_BYTES, WATCH_BYTES } from '../../src/daemon/disk-watch.ts'

function watch(sizes: Record<string, number>) {
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
    end: (run) => void ended.push(run),
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
