import { expect, test } from 'vitest'
import { displayWidth, escapeLine, escapeText, padEnd, truncate } from '../../src/core/escape.ts'

test('what moves the cursor, turns text round or cannot be seen is spelt out', () => {
  const cases: readonly (readonly [string, string])[] = [
    ['\x1b[31mred\x1b[0m', '\\x1b[31mred\\x1b[0m'],
    ['a\rb', 'a\\rb'],
    ['\u009b1A', '\\x9b1A'],
    ['a\u202eb\u2066c', 'a\\u{202e}b\\u{2066}c'],
    ['zero\u200bwidth\ufeff', 'zero\\u{200b}width\\u{feff}'],
    ['\u2028\u2029', '\\u{2028}\\u{2029}'],
    ['soft\u00adhyphen', 'soft\\xadhyphen'],
    ['tag\u{e0041}', 'tag\\u{e0041}'],
    ['filler\u3164', 'filler\\u{3164}'],
    ['lone\ud800', 'lone\\u{d800}'],
  ]
  for (const [text, expected] of cases) expect(escapeText(text)).toBe(expected)
})

test('text is left alone: letters of any script, emoji, new lines, tabs', () => {
  for (const text of ['naïve é', '日本語', 'שלום', '😀 ☎\ufe0f', 'a\n\tb', '']) expect(escapeText(text)).toBe(text)
})

test('on one line, new lines and tabs are spelt out too', () => expect(escapeLine('a\n\tb\x07')).toBe('a\\n\\tb\\x07'))

test('columns: wide characters take two, combining ones none', () => {
  const cases: readonly (readonly [string, number])[] = [
    ['abc', 3],
    ['日本', 4],
    ['ｆｕ', 4],
    ['😀', 2],
    ['e\u0301', 1],
    ['한글', 4],
    ['–', 1],
    ['', 0],
  ]
  for (const [text, width] of cases) expect([text, displayWidth(text)]).toEqual([text, width])
})

test('text is cut and padded by columns, not by characters', () => {
  expect(truncate('日本語です', 6)).toBe('日本…')
  expect(truncate('abcdef', 6)).toBe('abcdef')
  expect(truncate('abcdefg', 6)).toBe('abcde…')
  expect(displayWidth(padEnd('日本', 7))).toBe(7)
  expect(padEnd('abc', 2)).toBe('abc')
})
