import fc from 'fast-check'
import { expect, it } from 'vitest'
import { editDistance, nearest, suggestion } from '../../src/config/nearest.ts'

it('counts inserts, removals, changes and swaps', () => {
  expect(
    ['kitten/sitting', 'projcts/projects', 'pm/mp', '/abc', 'abc/'].map((pair) => editDistance(pair.split('/')[0] ?? '', pair.split('/')[1] ?? '')),
  ).toEqual([3, 1, 1, 3, 3])
})

it('is a distance: zero for the same, the same both ways, never more than the longer word', () => {
  fc.assert(
    fc.property(fc.string({ maxLength: 12 }), fc.string({ maxLength: 12 }), (a, b) => {
      expect(editDistance(a, a)).toBe(0)
      expect(editDistance(a, b)).toBe(editDistance(b, a))
      expect(editDistance(a, b)).toBeLessThanOrEqual(Math.max(a.length, b.length))
    }),
  )
})

it('suggests what is near, lists few, says nothing of many', () => {
  expect(nearest('Roles', ['projects', 'roles'])).toBe('roles')
  expect(nearest('by', ['max'])).toBeUndefined()
  expect(suggestion('zzz', ['by', 'max'])).toBe('; expected one of by, max')
  expect(
    suggestion(
      'zzz',
      Array.from({ length: 13 }, (_, i) => `name-${String(i)}`),
    ),
  ).toBe('')
})
