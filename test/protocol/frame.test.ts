import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { heldBytes } from '../helpers/memory.ts'
import { createLineDecoder, FRAME_LIMIT, parseFrame, toFrame } from '../../src/protocol/frame.ts'

const refusal = expect.objectContaining({ code: 'invalid-request' }) as unknown

/** The bytes in pieces, cut at these places. */
const split = (bytes: Buffer, cuts: readonly number[]): Buffer[] => {
  const places = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b), bytes.length]
  return places.slice(1).map((end, index) => bytes.subarray(places[index], end))
}

describe('the line decoder', () => {
  test('gives the same lines however the bytes are split', () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: 'binary' }), { maxLength: 8 }), fc.array(fc.nat(), { maxLength: 12 }), (texts, cuts) => {
        const lines = texts.map((text) => text.replaceAll('\n', ' '))
        const decoder = createLineDecoder(FRAME_LIMIT.bus)
        const bytes = Buffer.from(lines.map((line) => `${line}\n`).join(''))
        const found = split(bytes, cuts).flatMap((piece) => decoder.push(piece))
        expect(found.map(String)).toEqual(lines.map((line) => Buffer.from(line).toString()))
      }),
    )
  })

  test('takes a frame of exactly the limit and refuses one byte more at once', () => {
    const limit = FRAME_LIMIT.launch
    expect(createLineDecoder(limit).push(Buffer.from(`${'x'.repeat(limit - 1)}\n`))).toHaveLength(1)
    expect(() => createLineDecoder(limit).push(Buffer.from(`${'x'.repeat(limit)}\n`))).toThrow(refusal)
    expect(() => createLineDecoder(limit).push(Buffer.alloc(limit, 'x'))).toThrow(refusal)
  })

  test('counts a line over all its pieces, and anew for the next line', () => {
    const decoder = createLineDecoder(10)
    expect(decoder.push(Buffer.from('12345678\n1234'))).toHaveLength(1)
    expect(decoder.push(Buffer.from('56789\n'))).toHaveLength(1)
    decoder.push(Buffer.from('123456789'))
    expect(() => decoder.push(Buffer.from('0'))).toThrow(refusal)
  })

  test('holds little more than the bytes of a line that comes one by one', () => {
    const COUNT = 300_000
    const decoder = createLineDecoder(FRAME_LIMIT.bus)
    const before = heldBytes()
    for (let n = 0; n < COUNT; n++) decoder.push(Buffer.from('x'))
    expect(heldBytes() - before).toBeLessThan(10 * COUNT)
    expect(decoder.push(Buffer.from('\n')).map(({ length }) => length)).toEqual([COUNT])
  })

  test('leaves what follows the first line with the caller', () => {
    const found = createLineDecoder(100).pushOne(Buffer.from('one\ntwo\n'))
    expect([String(found?.line), String(found?.rest)]).toEqual(['one', 'two\n'])
  })
})

describe('a frame', () => {
  const nested = (depth: number): string => `{"a":${'['.repeat(depth - 1)}${']'.repeat(depth - 1)}}`

  test.each([
    ['invalid UTF-8', Buffer.from([0x7b, 0xc3, 0x28, 0x7d])],
    ['NUL', Buffer.from('{"a":"\0"}')],
    ['a byte order mark', Buffer.from('\ufeff{}')],
    ['nesting deeper than 32', Buffer.from(nested(33))],
    ['an unclosed depth bomb', Buffer.from('['.repeat(2000))],
    ['an array', Buffer.from('[]')],
    ['null', Buffer.from('null')],
    ['a number', Buffer.from('7')],
    ['nothing', Buffer.from('')],
    ['two values', Buffer.from('{} {}')],
  ])('refuses %s', (_what, bytes) => {
    expect(() => parseFrame(bytes)).toThrow(refusal)
  })

  test.each([
    ['nesting of 32', nested(32), 'a'],
    ['brackets inside a string', `{"a":"${'['.repeat(100)}\\"${'{'.repeat(100)}"}`, 'a'],
    ['an escaped NUL, which is data', '{"a":"\\u0000"}', 'a'],
  ])('takes %s', (_what, text, key) => {
    expect(parseFrame(Buffer.from(text))).toHaveProperty(key)
  })

  test('makes __proto__ an own key, which a strict schema then refuses', () => {
    const frame = parseFrame(Buffer.from('{"__proto__":{"polluted":true}}'))
    expect(Object.keys(frame)).toEqual(['__proto__'])
    expect(Object.getPrototypeOf(frame)).toBe(Object.prototype)
  })

  test('of a key given twice the last counts', () => {
    expect(parseFrame(Buffer.from('{"a":1,"a":2}'))).toEqual({ a: 2 })
  })

  test('survives the way there and back', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 5 })), (value) => {
        const line = Buffer.from(toFrame(value)).subarray(0, -1)
        expect(parseFrame(line)).toEqual(JSON.parse(JSON.stringify(value)))
      }),
    )
  })
})
