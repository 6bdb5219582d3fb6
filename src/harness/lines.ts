import { closeSync, mkdirSync, openSync, writeSync } from 'node:fs'
import { join } from 'node:path'

const CAP_BYTES = 64 * 1024 * 1024
const END_BYTES = 64 * 1024
const NEWLINE = 0x0a

/** A line that is longer than memory allows: its two ends, and the file that holds all of it. */
export interface LongLine {
  readonly head: string
  readonly tail: string
  readonly bytes: number
  readonly path: string
}

export interface LineReader {
  push(chunk: Buffer): void
  /** What came after the last newline is a line as well. */
  end(): void
}

export interface LineReaderDeps {
  readonly onLine: (line: string) => void
  readonly onLong: (line: LongLine) => void
  /** Where a line past the cap goes; made when there is one. */
  readonly spillDir: string
  readonly capBytes?: number
}

interface Spill {
  readonly fd: number
  readonly path: string
  readonly head: Buffer
  tail: Buffer
}

/** Splits at `\n` and nothing else. A line past the cap goes to a file: it is never lost and never a reason to fail. */
export function createLineReader({ onLine, onLong, spillDir, capBytes = CAP_BYTES }: LineReaderDeps): LineReader {
  let pieces: Buffer[] = []
  let bytes = 0
  let spill: Spill | undefined
  let spills = 0

  const startSpill = (): Spill => {
    mkdirSync(spillDir, { recursive: true, mode: 0o700 })
    const path = join(spillDir, `line-${String(++spills)}`)
    const fd = openSync(path, 'wx', 0o600)
    const all = Buffer.concat(pieces)
    pieces = []
    writeSync(fd, all)
    return { fd, path, head: Buffer.from(all.subarray(0, END_BYTES)), tail: Buffer.from(all.subarray(-END_BYTES)) }
  }
  const add = (piece: Buffer): void => {
    bytes += piece.length
    if (spill !== undefined) {
      writeSync(spill.fd, piece)
      spill.tail = Buffer.concat([spill.tail, piece.subarray(-END_BYTES)]).subarray(-END_BYTES)
      return
    }
    pieces.push(piece)
    if (bytes > capBytes) spill = startSpill()
  }
  const finish = (): void => {
    if (spill === undefined) onLine(Buffer.concat(pieces).toString('utf8'))
    else {
      closeSync(spill.fd)
      onLong({ head: spill.head.toString('utf8'), tail: spill.tail.toString('utf8'), bytes, path: spill.path })
    }
    pieces = []
    bytes = 0
    spill = undefined
  }
  return {
    push(chunk) {
      let from = 0
      for (let at = chunk.indexOf(NEWLINE); at !== -1; at = chunk.indexOf(NEWLINE, from)) {
        add(chunk.subarray(from, at))
        finish()
        from = at + 1
      }
      if (from < chunk.length) add(chunk.subarray(from))
    },
    end() {
      if (bytes > 0) finish()
    },
  }
}
