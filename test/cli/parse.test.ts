import { expect, test } from 'vitest'
import { firstWordOf } from '../../src/cli/program.ts'
import { deadline, duration, integer, moment, oneOf } from '../../src/cli/parse.ts'

const usage = { code: 'usage' }
const refusal = (act: () => unknown): unknown => {
  try {
    return act()
  } catch (error) {
    return error
  }
}

test('durations have a unit', () => {
  expect([duration('1500ms'), duration('90s'), duration('10m'), duration('2h'), duration('1d')]).toEqual([1500, 90_000, 600_000, 7_200_000, 86_400_000])
  for (const text of ['soon', '10', '-1s', '1.5h', '', 'm', '10 m']) expect(refusal(() => duration(text))).toMatchObject(usage)
})

test('a moment is RFC 3339 or so long ago', () => {
  expect(moment('1h', 10_000_000)).toBe(6_400_000)
  expect(moment('2026-01-31T09:00:00Z')).toBe(Date.UTC(2026, 0, 31, 9))
  expect(moment('2026-01-31T09:00:00+01:00')).toBe(Date.UTC(2026, 0, 31, 8))
  expect(moment('2026-01-31')).toBe(Date.UTC(2026, 0, 31))
  expect(moment('2028-02-29')).toBe(Date.UTC(2028, 1, 29))
  const impossible = [
    '2026-02-30',
    '2026-02-29',
    '2026-04-31T09:00:00Z',
    '2026-00-10',
    '2026-01-00',
    '2026-01-31T24:00:00Z',
    '2026-01-31T09:00:00+25:00',
    '2026-01-31T09:00Z',
  ]
  for (const text of ['yesterday', '2026-13-01', '1', 'Jan 31 2026', ...impossible]) expect(refusal(() => moment(text))).toMatchObject(usage)
})

test('a deadline lies ahead by a duration, or is a time', () => {
  expect(Date.parse(deadline('1h')) - Date.now()).toBeGreaterThan(3_500_000)
  expect(deadline('2026-01-31T09:00:00Z')).toBe('2026-01-31T09:00:00.000Z')
})

test('whole numbers and closed words', () => {
  expect(integer('42')).toBe(42)
  for (const text of ['-1', '1.5', 'x', '']) expect(refusal(() => integer(text))).toMatchObject(usage)
  expect(oneOf(['a', 'b'])('b')).toBe('b')
  expect(refusal(() => oneOf(['a', 'b'])('c'))).toMatchObject(usage)
})

test('the first word says which commands are needed, wherever global options stand', () => {
  expect(firstWordOf(['ps', '--json'])).toBe('ps')
  expect(firstWordOf(['--json', '-q', 'ps'])).toBe('ps')
  expect(firstWordOf(['--data-root', 'd', 'ps'])).toBe('ps')
  expect(firstWordOf(['--data-root=d', 'ps'])).toBe('ps')
  expect(firstWordOf(['--help'])).toBeUndefined()
  expect(firstWordOf(['--help', 'ps'])).toBeUndefined()
  expect(firstWordOf([])).toBeUndefined()
})
