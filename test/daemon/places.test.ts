import { expect, test } from 'vitest'
import { placesOf } from '../../src/daemon/places.ts'

const NAMES = ['bus', 'control', 'launch', 'git', 'gateway'] as const

test.each([256, 1024, 4096, 20_000, 1_048_576])('with %i descriptors all sockets and gateways hold at most half of them', (openFiles) => {
  const all = NAMES.map((name) => placesOf(name, openFiles).all)
  expect(all.reduce((sum, count) => sum + count)).toBeLessThanOrEqual(openFiles / 2)
  expect(Math.min(...all)).toBeGreaterThan(0)
})

test('one run takes a part of a socket that others need', () => {
  expect(NAMES.map((name) => placesOf(name, 1_048_576).run)).toEqual([16, null, 512, 8, null])
  expect(NAMES.map((name) => placesOf(name, 1024).run)).toEqual([16, null, 212, 8, null])
  // one that hides who it is takes the places of the unknown as well
  for (const name of ['bus', 'git'] as const) expect(2 * (placesOf(name, 1024).run ?? 0)).toBeLessThanOrEqual(placesOf(name, 1024).all / 2)
})
