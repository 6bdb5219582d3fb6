import fc from 'fast-check'
import { expect, test } from 'vitest'
import { toSafeJson } from '../../src/core/escape.ts'
import { createRedact } from '../../src/runner/redact.ts'

test.each(['\u001b[31m', '\u009b31m', '\u202eevil', '\u200b', '\u2028', '\ufeff', '\u{e0041}', 'line\nfeed', '\u007f'])(
  'JSON of %j holds nothing that a terminal obeys',
  (text) => {
    const json = toSafeJson({ body: text })
    expect(json).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u)
    expect(JSON.parse(json)).toEqual({ body: text })
  },
)

test('JSON stays the same value, whatever is in it, and plain text stays readable', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      expect(JSON.parse(toSafeJson(value))).toEqual(JSON.parse(JSON.stringify(value)))
    }),
  )
  expect(toSafeJson({ name: 'Zoë 名前' })).toBe('{"name":"Zoë 名前"}')
})

test('a secret of several lines shows in none of its lines', () => {
  const pem = '-----BEGIN KEY-----\nabcdefghijkl\nxyz\n-----END KEY-----\n'
  const redact = createRedact([pem])
  expect(redact('the second line: abcdefghijkl.')).toBe('the second line: ***.')
  expect(redact(pem)).not.toContain('abcdefghijkl')
  expect(redact('xyz is too short to be a secret')).toContain('xyz')
})
