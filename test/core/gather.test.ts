import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createGathered } from '../../src/core/gather.ts'
import { heldBytes } from '../helpers/memory.ts'

test('gives what came, however it was cut, and then nothing', () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 50 })), (pieces) => {
      const gathered = createGathered()
      for (const piece of pieces) gathered.push(Buffer.from(piece))
      expect(gathered.length).toBe(Buffer.concat(pieces).length)
      expect(gathered.take()).toEqual(Buffer.concat(pieces))
      expect([gathered.length, gathered.take().length]).toEqual([0, 0])
    }),
  )
})

test('what was taken stays as it was', () => {
  const gathered = createGathered()
  gathered.push(Buffer.from('one'))
  const taken = gathered.take()
  gathered.push(Buffer.from('two'))
  expect([String(taken), String(gathered.take())]).toEqual(['one', 'two'])
})

test('grows by what it says, at most to twice of what it holds', () => {
  const gathered = createGathered()
  let bytes = 0
  for (const count of [100, 1, 1, 300, 5000, 1]) {
    bytes += gathered.growth(count)
    gathered.push(Buffer.alloc(count))
    expect(bytes).toBeGreaterThanOrEqual(gathered.length)
    expect(bytes).toBeLessThanOrEqual(2 * gathered.length)
  }
})

test('holds little more than its bytes when they come one by one', () => {
  const COUNT = 300_000
  const pieces = Array.from({ length: COUNT }, () => Buffer.from('x'))
  const before = heldBytes()
  const gathered = createGathered()
  for (const piece of pieces) gathered.push(piece)
  // the control: what an array of them holds
  expect(heldBytes() - before).toBeLessThan(4 * COUNT)
  pieces.length = 0
  expect(before - heldBytes()).toBeGreaterThan(50 * COUNT)
  expect(gathered.length).toBe(COUNT)
})
