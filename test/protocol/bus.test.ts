import { expect, test } from 'vitest'
import { BUS_METHODS } from '../../src/protocol/bus.ts'

const takes = (title: string): boolean => BUS_METHODS['task.create'].safeParse({ title }).success
const subject = (text: string): boolean => BUS_METHODS['message.send'].safeParse({ to: 'pm', class: 'NOTE', body: '', subject: text }).success

test.each(['a\u3164b', 'a\u115fb', 'a\u034fb', 'a\u00adb', 'a\u200bb', 'a\u{e0041}b', 'a\ud800b', 'a\nb', 'a\tb', '\ufe0f', ' \u3164 ', ''])(
  '%j is no title: it has what takes no room, or nothing else',
  (title) => {
    expect(takes(title)).toBe(false)
  },
)

test.each(['Fix it', 'caf\u00e9', 'cafe\u0301', '\u65e5\u672c\u8a9e', '\u2615\ufe0f first', '\u{1f680} up'])('%j is one', (title) => {
  expect([takes(title), subject(title)]).toEqual([true, true])
})

test('a subject is such a line, too', () => {
  expect([subject('a\u3164b'), subject('')]).toEqual([false, true])
})
