import { closeSync, fstatSync, openSync, renameSync, rmSync, writeSync } from 'node:fs'
import { errnoOf } from './errors.ts'

interface RotatingFileOptions {
  readonly maxBytes: number
  /** How many earlier files stay, as `<path>.1` (the youngest), `<path>.2` … */
  readonly keep: number
}

/** Where a log goes that must not fill the disk: whole lines, in order, each written before `write` returns. */
export interface RotatingFile {
  write(line: string): void
  close(): void
}

/** The names of the earlier files of a log, the oldest first. */
export const rotatedNames = (path: string, keep: number): readonly string[] => Array.from({ length: keep }, (_, n) => `${path}.${String(keep - n)}`)

function shift(path: string, keep: number): void {
  const names = [...rotatedNames(path, keep), path]
  for (const [index, older] of names.entries()) {
    const younger = names[index + 1]
    if (younger === undefined) return
    try {
      renameSync(younger, older)
    } catch (error) {
      if (errnoOf(error) !== 'ENOENT') throw error
    }
  }
}

const isDiskError = (error: unknown): boolean => ['ENOSPC', 'EDQUOT', 'EIO', 'EROFS', 'EMFILE', 'ENFILE'].includes(errnoOf(error) ?? '')

/**
 * Opens a log for appending; past `maxBytes` it is renamed and a new one begun, between two lines. What a full disk does not
 * take is counted, and said by `toLostLine` as soon as there is room: a log may not end who writes it.
 */
export function openRotatingFile(path: string, { maxBytes, keep }: RotatingFileOptions, toLostLine: (lines: number) => string): RotatingFile {
  let fd = openSync(path, 'a', 0o600)
  let bytes = fstatSync(fd).size
  let lost = 0
  let torn = false

  /** A new file first: without one nothing is renamed, and the old goes on. A shift that fails again and again would lose all earlier ones. */
  const rotate = (): void => {
    const fresh = `${path}.new`
    const next = openSync(fresh, 'w', 0o600)
    try {
      shift(path, keep)
      renameSync(fresh, path)
    } catch (error) {
      closeSync(next)
      rmSync(fresh, { force: true })
      throw error
    }
    closeSync(fd)
    fd = next
    bytes = 0
  }
  const append = (line: string): void => {
    const size = Buffer.byteLength(line)
    if (bytes > 0 && bytes + size > maxBytes) rotate()
    for (let rest = Buffer.from(torn ? `\n${line}` : line); rest.length > 0;) {
      const written = writeSync(fd, rest)
      bytes += written
      rest = rest.subarray(written)
      torn = rest.length > 0
    }
  }
  return {
    write(line) {
      try {
        if (lost > 0) append(toLostLine(lost))
        lost = 0
        append(line)
      } catch (error) {
        if (!isDiskError(error)) throw error
        lost += 1
      }
    },
    close: () => closeSync(fd),
  }
}
