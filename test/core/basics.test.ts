import { inspect } from 'node:util'
import { describe, expect, test } from 'vitest'
import { CODES, isErrorCode } from '../../src/core/codes.ts'
import { inUnits } from '../../src/core/disk-room.ts'
import { parseDuration, parseSize } from '../../src/core/duration.ts'
import { AppError, codeOf, errnoOf } from '../../src/core/errors.ts'
import { createRunId, isId, isRunId } from '../../src/core/ids.ts'
import { createScope } from '../../src/core/scope.ts'
import { Secret } from '../../src/core/secret.ts'
import { createLog } from '../../src/core/log.ts'

test.each([
  ['10m', 600_000],
  ['2h', 7_200_000],
  ['30d', 2_592_000_000],
  ['1500ms', 1500],
  ['0s', 0],
])('%s is %d ms', (text, ms) => {
  expect(parseDuration(text)).toBe(ms)
})
test.each([
  [0, '0.0 KiB'],
  [812 * 1024, '812.0 KiB'],
  [64 * 1024 ** 2 - 1, '64.0 MiB'],
  [1024 ** 3 - 1, '1.0 GiB'],
  [5.4 * 1024 ** 3, '5.4 GiB'],
  [4000 * 1024 ** 4, '4000.0 TiB'],
])('%d bytes are %s', (bytes, text) => {
  expect(inUnits(bytes)).toBe(text)
})
test.each(['soon', '10', 'm', '-1s', '1.5h', '10 m', '10mm', '9999999999s'])('%j is no duration', (text) => {
  expect(parseDuration(text)).toBeUndefined()
})

test.each([
  ['256M', 268_435_456],
  ['4G', 4_294_967_296],
  ['0', 0],
])('%s is %d bytes', (text, bytes) => {
  expect(parseSize(text)).toBe(bytes)
})
test.each(['', 'M', '4GB', '-1', '1.5G'])('%j is no size', (text) => {
  expect(parseSize(text)).toBeUndefined()
})

describe('ids', () => {
  test.each(['a', 'coder-2', 't-12', 'a'.repeat(32)])('%s is one', (text) => {
    expect(isId(text)).toBe(true)
  })
  test.each(['', 'A', '2a', 'a--b', 'a-', 'a_b', 'a/b', '..', 'a'.repeat(33), 'a\n'])('%j is none', (text) => {
    expect(isId(text)).toBe(false)
  })
  test('a run id is r and 12 hex digits, never twice the same', () => {
    const ids = Array.from({ length: 100 }, createRunId)
    expect(ids.every(isRunId)).toBe(true)
    expect(new Set(ids).size).toBe(100)
  })
})

describe('codes', () => {
  test('a name of Object.prototype is none', () => {
    expect(['constructor', '__proto__', 'toString'].filter(isErrorCode)).toEqual([])
    expect(isErrorCode('busy')).toBe(true)
  })
  test('every text is one lower-case phrase without a full stop', () => {
    for (const { text } of Object.values(CODES)) expect(text).toMatch(/^[^A-Z].*[^.]$/)
  })
  test('what is no refusal of ours is internal, and an errno is no code', () => {
    expect([codeOf(new AppError('busy', '')), codeOf(new Error('x')), codeOf('x')]).toEqual(['busy', 'internal', 'internal'])
    expect(errnoOf(Object.assign(new Error('x'), { code: 'ENOENT' }))).toBe('ENOENT')
    expect(errnoOf(new AppError('busy', ''))).toBeUndefined()
  })
})

describe('a secret', () => {
  const secret = new Secret('stand-in')
  test('shows nowhere but where it is revealed', () => {
    expect([String(secret), JSON.stringify({ secret }), inspect({ secret }), inspect(secret)].join()).not.toContain('stand-in')
    expect(secret.reveal()).toBe('stand-in')
  })
  test('and capabilities and credentials show in no log', () => {
    const lines: string[] = []
    const log = createLog({ write: (line: string) => void lines.push(line) })
    log.info({ cap: 'stand-in', request: { cap: 'stand-in' }, credentials: ['stand-in'], session: { credentials: 'stand-in' }, value: 'stand-in' }, 'something')
    log.info({ instance: 'coder' }, 'the control')
    expect(lines.join()).not.toContain('stand-in')
    expect(lines.join()).toContain('coder')
  })
})

describe('a scope', () => {
  test('closes in reverse, once, and reports every error', async () => {
    const closed: string[] = []
    const scope = createScope()
    scope.defer(() => closed.push('first'))
    scope.defer(() => {
      throw new Error('one')
    })
    scope.defer(() => Promise.reject(new Error('two')))
    scope.defer(() => closed.push('last'))
    await expect(scope.close()).rejects.toMatchObject({ errors: [{ message: 'two' }, { message: 'one' }] })
    expect(closed).toEqual(['last', 'first'])
    await scope.close()
    expect(closed).toEqual(['last', 'first'])
  })
})
