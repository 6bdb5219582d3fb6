import { expect, test } from 'vitest'
import { judgeDisk } from '../../src/launch/facts.ts'

const GiB = 1024 ** 3

test.each([
  ['less than 2 GiB', 1.9 * GiB, 10 * GiB, false],
  ['2 GiB of a small disk', 2 * GiB, 10 * GiB, true],
  ['less than 5 %', 4.9 * GiB, 100 * GiB, false],
  ['5 %', 5 * GiB, 100 * GiB, true],
])('a disk with %s free', (_what, free, total, ok) => {
  expect(judgeDisk(free, total)?.code ?? null).toBe(ok ? null : 'disk-full')
})
