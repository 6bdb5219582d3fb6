import { AppError } from '../core/errors.ts'

type Container = 'object' | 'array'

/** What a scan meets, in order. `start` and `end` are offsets of its bytes, quotes included. */
export interface JsonVisitor {
  opened(kind: Container): void
  closed(): void
  key(start: number, end: number): void
  /** A string, number, true, false or null that is a value. */
  scalar(start: number, end: number): void
}

/** A scan stops at any byte and goes on from there: a long text need not hold up who has other things to do. */
export interface JsonScan {
  /** Reads on to this offset. Throws `invalid-request` at the first byte that is not JSON. */
  to(end: number): void
  /** Call at the end of the text. */
  finish(): void
}

/** No program nests a request deeper, and it bounds what a scan remembers. */
const MAX_DEPTH = 256
const MAX_LITERAL_BYTES = 1024

/** What may come between two tokens. */
type Expected = 'value' | 'value-or-end' | 'key' | 'key-or-end' | 'colon' | 'comma-or-end' | 'nothing'
/** The token that the scan stands in; `hex` is the end of `\uXXXX`. */
type Token = 'none' | 'string' | 'escape' | 'hex' | 'literal'

interface Scan {
  readonly bytes: Buffer
  readonly visitor: JsonVisitor
  readonly open: Container[]
  at: number
  /** Where the token begins. */
  start: number
  token: Token
  hexLeft: number
  expected: Expected
}

const QUOTE = 0x22
const COMMA = 0x2c
const COLON = 0x3a
const BACKSLASH = 0x5c
const SMALL_U = 0x75
const OPENING: ReadonlyMap<number, Container> = new Map([
  [0x7b, 'object'],
  [0x5b, 'array'],
])
const CLOSING: ReadonlyMap<number, Container> = new Map([
  [0x7d, 'object'],
  [0x5d, 'array'],
])
const LITERAL = /^(?:true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)$/
const ESCAPED = new Set(Buffer.from('"\\/bfnrt'))

const isSpace = (byte: number): boolean => byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09
const isDigit = (byte: number): boolean => byte >= 0x30 && byte <= 0x39
const isLetter = (byte: number): boolean => (byte | 0x20) >= 0x61 && (byte | 0x20) <= 0x7a
const isHex = (byte: number): boolean => isDigit(byte) || (isLetter(byte) && (byte | 0x20) <= 0x66)
/** What numbers, true, false and null are made of; whether it is one of them is asked at its end. */
const isLiteral = (byte: number): boolean => isDigit(byte) || isLetter(byte) || byte === 0x2b || byte === 0x2d || byte === 0x2e

const refuse = (why: string): never => {
  throw new AppError('invalid-request', why)
}
const broken = (): never => refuse('the body is no JSON')

const isValueNext = ({ expected }: Scan): boolean => expected === 'value' || expected === 'value-or-end'

function valueEnded(scan: Scan): void {
  scan.expected = scan.open.length === 0 ? 'nothing' : 'comma-or-end'
}

function open(scan: Scan, kind: Container): void {
  if (!isValueNext(scan)) broken()
  if (scan.open.length === MAX_DEPTH) refuse(`the body is nested deeper than ${String(MAX_DEPTH)}`)
  scan.open.push(kind)
  scan.expected = kind === 'object' ? 'key-or-end' : 'value-or-end'
  scan.visitor.opened(kind)
}

function close(scan: Scan, kind: Container): void {
  const mayEnd = scan.expected === 'comma-or-end' || scan.expected === 'key-or-end' || scan.expected === 'value-or-end'
  if (!mayEnd || scan.open.pop() !== kind) broken()
  valueEnded(scan)
  scan.visitor.closed()
}

function separate(scan: Scan, byte: number): void {
  if (byte === COLON && scan.expected === 'colon') scan.expected = 'value'
  else if (byte === COMMA && scan.expected === 'comma-or-end') scan.expected = scan.open.at(-1) === 'object' ? 'key' : 'value'
  else broken()
}

function begin(scan: Scan, byte: number): void {
  if (isSpace(byte)) return
  const [opening, closing] = [OPENING.get(byte), CLOSING.get(byte)]
  if (opening !== undefined) open(scan, opening)
  else if (closing !== undefined) close(scan, closing)
  else if (byte === QUOTE && scan.expected !== 'colon' && scan.expected !== 'comma-or-end' && scan.expected !== 'nothing') start(scan, 'string')
  else if (isLiteral(byte) && isValueNext(scan)) start(scan, 'literal')
  else separate(scan, byte)
}

function start(scan: Scan, token: Token): void {
  scan.token = token
  scan.start = scan.at
}

function endString(scan: Scan): void {
  const { visitor, start: from, at } = scan
  scan.token = 'none'
  if (isValueNext(scan)) {
    valueEnded(scan)
    visitor.scalar(from, at + 1)
  } else {
    scan.expected = 'colon'
    visitor.key(from, at + 1)
  }
}

function inString(scan: Scan, byte: number): void {
  if (byte === QUOTE) endString(scan)
  else if (byte === BACKSLASH) scan.token = 'escape'
  else if (byte < 0x20) broken()
}

function inEscape(scan: Scan, byte: number): void {
  if (scan.token === 'escape') {
    if (byte !== SMALL_U && !ESCAPED.has(byte)) broken()
    scan.hexLeft = byte === SMALL_U ? 4 : 0
  } else if (isHex(byte)) scan.hexLeft -= 1
  else broken()
  scan.token = scan.hexLeft > 0 ? 'hex' : 'string'
}

function endLiteral(scan: Scan): void {
  const { bytes, visitor, start: from, at } = scan
  if (at - from > MAX_LITERAL_BYTES || !LITERAL.test(bytes.toString('latin1', from, at))) broken()
  scan.token = 'none'
  valueEnded(scan)
  visitor.scalar(from, at)
}

function step(scan: Scan, byte: number): void {
  if (scan.token === 'literal' && !isLiteral(byte)) endLiteral(scan)
  if (scan.token === 'string') inString(scan, byte)
  else if (scan.token === 'none') begin(scan, byte)
  else if (scan.token !== 'literal') inEscape(scan, byte)
}

/** Reads JSON (RFC 8259) out of valid UTF-8, byte by byte: it builds nothing, so no text costs more memory than another. */
export function createJsonScan(bytes: Buffer, visitor: JsonVisitor): JsonScan {
  const scan: Scan = { bytes, visitor, open: [], at: 0, start: 0, token: 'none', hexLeft: 0, expected: 'value' }
  return {
    to(end) {
      for (; scan.at < end; scan.at++) step(scan, bytes[scan.at] ?? 0)
    },
    finish() {
      if (scan.token === 'literal') endLiteral(scan)
      if (scan.token !== 'none' || scan.expected !== 'nothing') broken()
    },
  }
}
