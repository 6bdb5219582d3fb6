import { isUtf8 } from 'node:buffer'
import { AppError } from '../core/errors.ts'
import { createGathered } from '../core/gather.ts'

/** Bytes of a frame, its newline included, per socket. */
export const FRAME_LIMIT = { launch: 4096, git: 4096, bus: 512 * 1024, control: 512 * 1024 } as const
const MAX_DEPTH = 32
const NEWLINE = 0x0a

const refuse = (why: string): never => {
  throw new AppError('invalid-request', why)
}

/** Turns chunks, split at any byte, into the raw lines in them. */
export interface LineDecoder {
  /** The whole lines that this chunk completed, without their newline. Throws `invalid-request` once a line is past its limit, before it ends. */
  push(chunk: Buffer): Buffer[]
  /** Like push, but stops after one line: what follows it stays with the caller. */
  pushOne(chunk: Buffer): { readonly line: Buffer; readonly rest: Buffer } | undefined
}

export function createLineDecoder(limit: number): LineDecoder {
  const begun = createGathered()
  const end = (tail: Buffer): Buffer => {
    if (begun.length === 0) return tail
    begun.push(tail)
    return begun.take()
  }
  const pushOne = (chunk: Buffer): { line: Buffer; rest: Buffer } | undefined => {
    const at = chunk.indexOf(NEWLINE)
    const own = at === -1 ? chunk.length : at
    // a line of limit - 1 bytes and its newline is whole; limit bytes without one can no longer become a frame
    if (begun.length + own >= limit) refuse(`a frame is at most ${String(limit)} bytes`)
    if (at !== -1) return { line: end(chunk.subarray(0, at)), rest: chunk.subarray(at + 1) }
    begun.push(chunk)
    return undefined
  }
  return {
    pushOne,
    push(chunk) {
      const lines: Buffer[] = []
      let rest = chunk
      for (;;) {
        const found = pushOne(rest)
        if (found === undefined) return lines
        lines.push(found.line)
        rest = found.rest
      }
    },
  }
}

/** Refuses nesting deeper than 32 before anything is built from it. */
function assertDepth(text: string): void {
  let depth = 0
  let inString = false
  for (let at = 0; at < text.length; at++) {
    const char = text.charCodeAt(at)
    if (inString) {
      if (char === 0x5c) at++
      else if (char === 0x22) inString = false
    } else if (char === 0x22) inString = true
    else if (char === 0x7b || char === 0x5b) {
      if (++depth > MAX_DEPTH) refuse(`a frame nests at most ${String(MAX_DEPTH)} deep`)
    } else if (char === 0x7d || char === 0x5d) depth--
  }
}

/**
 * The JSON object of one line. Throws `invalid-request` for invalid UTF-8, NUL, a BOM, nesting past 32, what is no JSON and
 * what is no object. `__proto__` arrives as an own key (JSON.parse makes it so) and is an unknown key to every schema.
 */
export function parseFrame(line: Buffer): Record<string, unknown> {
  if (!isUtf8(line)) refuse('a frame is UTF-8 text')
  const text = line.toString()
  if (text.includes('\0')) refuse('a frame holds no NUL')
  if (text.startsWith('\ufeff')) refuse('a frame begins with no byte order mark')
  assertDepth(text)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    refuse('a frame is one JSON object')
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return refuse('a frame is one JSON object')
  return value as Record<string, unknown>
}

/** One frame, newline included. */
export const toFrame = (value: unknown): string => `${JSON.stringify(value)}\n`
