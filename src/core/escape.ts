/** What moves a cursor, reverses text, takes no room or is no character at all; a newline and a tab are text. */
const UNSAFE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu
const NAMED: Readonly<Record<string, string>> = { '\n': '\\n', '\t': '\\t', '\r': '\\r' }
/** Asks for the coloured form of the symbol before it: harmless, and part of what people type. */
const EMOJI_STYLE = '\ufe0f'

function toEscape(char: string): string {
  const code = char.codePointAt(0) ?? 0
  return NAMED[char] ?? (code < 0x100 ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u{${code.toString(16)}}`)
}

/** Most of what is shown needs no escape, and to look for one costs ten times as much as to see that. */
const PLAIN = /^[\x20-\x7e]*$/

/** Text of an unknown author, for a terminal: lines stay lines, everything invisible is spelt out. */
export const escapeText = (text: string): string =>
  text.replace(UNSAFE, (char) => (char === '\n' || char === '\t' || char === EMOJI_STYLE ? char : toEscape(char)))

/** The same on one line. */
export const escapeLine = (text: string): string => (PLAIN.test(text) ? text : escapeText(text).replace(/[\n\t]/g, toEscape))

/** East Asian wide and full-width characters take two columns (UAX #11); emoji are asked of the engine. */
const WIDE: readonly (readonly [number, number])[] = [
  [0x1100, 0x115f],
  [0x2e80, 0x303e],
  [0x3041, 0xa4cf],
  [0xa960, 0xa97f],
  [0xac00, 0xd7a3],
  [0xf900, 0xfaff],
  [0xfe10, 0xfe19],
  [0xfe30, 0xfe6f],
  [0xff01, 0xff60],
  [0xffe0, 0xffe6],
  [0x16fe0, 0x18cff],
  [0x1aff0, 0x1b2ff],
  [0x1f200, 0x1f2ff],
  [0x20000, 0x3fffd],
]
const EMOJI = /^\p{Emoji_Presentation}/u
const COMBINING = /^[\p{Mn}\p{Me}]/u

function widthOfCharacter(char: string): number {
  if (char === EMOJI_STYLE) return 1
  if (COMBINING.test(char)) return 0
  const code = char.codePointAt(0) ?? 0
  return EMOJI.test(char) || WIDE.some(([from, to]) => code >= from && code <= to) ? 2 : 1
}

/** How many columns of a terminal escaped text takes. */
export function displayWidth(text: string): number {
  if (PLAIN.test(text)) return text.length
  let width = 0
  for (const char of text) width += widthOfCharacter(char)
  return width
}

/** Escaped text cut to that many columns; what was cut is an ellipsis. */
export function truncate(text: string, columns: number): string {
  if (displayWidth(text) <= columns) return text
  let kept = ''
  let width = 1
  for (const char of text) {
    width += widthOfCharacter(char)
    if (width > columns) break
    kept += char
  }
  return `${kept}…`
}

/** Escaped text with spaces behind it up to that many columns. */
export const padEnd = (text: string, columns: number): string => text + ' '.repeat(Math.max(0, columns - displayWidth(text)))

/** The same JSON with nothing in it that a terminal would obey: what is invisible or turns text around stands as \\uXXXX. */
export const toSafeJson = (value: unknown): string =>
  JSON.stringify(value).replace(UNSAFE, (character) =>
    [...Array(character.length).keys()].map((at) => `\\u${character.charCodeAt(at).toString(16).padStart(4, '0')}`).join(''),
  )
