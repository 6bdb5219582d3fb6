import { AppError } from '../core/errors.ts'

/** POSIX pax interchange format, as `tar -xf` reads it. pax(1) */
export const BLOCK_BYTES = 512
const NAME_BYTES = 100
/** Eleven octal digits. */
const OCTAL_LIMIT = 8 ** 11

export interface TarEntry {
  /** Relative, with slashes; ends in none. */
  readonly path: string
  readonly kind: 'file' | 'directory'
  readonly sizeBytes: number
}

/** What one header block says, before extended headers are applied. */
interface Header {
  readonly path: string
  /** `0` a file, `5` a directory, `x` an extended header of the next entry. */
  readonly type: string
  readonly sizeBytes: number
}

/** How many bytes follow the content up to the next block. */
export const paddingOf = (sizeBytes: number): number => (BLOCK_BYTES - (sizeBytes % BLOCK_BYTES)) % BLOCK_BYTES

const isPlain = (path: string): boolean => path.length <= NAME_BYTES && /^[\x20-\x7e]+$/.test(path)

function checksumOf(block: Buffer): number {
  let sum = 0
  // the checksum's own field counts as spaces
  for (const [at, byte] of block.entries()) sum += at >= 148 && at < 156 ? 0x20 : byte
  return sum
}

function toBlock({ path, type, sizeBytes }: Header): Buffer {
  const block = Buffer.alloc(BLOCK_BYTES)
  const octal = (value: number, at: number, digits: number): void => void block.write(value.toString(8).padStart(digits, '0'), at, 'latin1')
  block.write(path, 0, NAME_BYTES, 'utf8')
  octal(type === '5' ? 0o700 : 0o600, 100, 7)
  octal(0, 108, 7)
  octal(0, 116, 7)
  octal(sizeBytes % OCTAL_LIMIT, 124, 11)
  octal(0, 136, 11)
  block.write(type, 156, 'latin1')
  block.write('ustar\0' + '00', 257, 'latin1')
  octal(checksumOf(block), 148, 6)
  block[155] = 0x20
  return block
}

/** `LENGTH key=value\n`, where LENGTH counts itself. */
function toRecord(key: string, value: string): string {
  const rest = ` ${key}=${value}\n`
  const bytes = Buffer.byteLength(rest)
  let length = bytes + 1
  while (bytes + String(length).length !== length) length = bytes + String(length).length
  return `${String(length)}${rest}`
}

/** Everything that precedes the content of an entry. */
export function toHeader({ path, kind, sizeBytes }: TarEntry): Buffer {
  const [name, type] = kind === 'directory' ? [`${path}/`, '5'] : [path, '0']
  const records = [isPlain(name) ? '' : toRecord('path', name), sizeBytes < OCTAL_LIMIT ? '' : toRecord('size', String(sizeBytes))].join('')
  const block = toBlock({ path: isPlain(name) ? name : 'long-name', type, sizeBytes })
  if (records === '') return block
  const bytes = Buffer.from(records)
  return Buffer.concat([toBlock({ path: 'pax', type: 'x', sizeBytes: bytes.length }), bytes, Buffer.alloc(paddingOf(bytes.length)), block])
}

const invalid = (why: string): AppError => new AppError('backup-invalid', why)

const textAt = (block: Buffer, at: number, length: number): string => {
  const field = block.subarray(at, at + length)
  const end = field.indexOf(0)
  return field.toString('utf8', 0, end === -1 ? length : end)
}

function octalAt(block: Buffer, at: number, length: number): number {
  const text = textAt(block, at, length).trim()
  if (!/^[0-7]+$/.test(text)) throw invalid('a header has no number where one stands')
  return Number.parseInt(text, 8)
}

/** Reads one header block; null: a block of zeros, which ends an archive. Throws `backup-invalid`. */
export function parseHeader(block: Buffer): Header | null {
  if (block.every((byte) => byte === 0)) return null
  if (octalAt(block, 148, 8) !== checksumOf(block)) throw invalid('a header has a wrong checksum')
  const prefix = textAt(block, 345, 155)
  const name = textAt(block, 0, NAME_BYTES)
  return { path: prefix === '' ? name : `${prefix}/${name}`, type: textAt(block, 156, 1) || '0', sizeBytes: octalAt(block, 124, 12) }
}

/** The records of an extended header. Throws `backup-invalid`. */
export function parseRecords(bytes: Buffer): ReadonlyMap<string, string> {
  const records = new Map<string, string>()
  for (let at = 0; at < bytes.length;) {
    const length = Number(/^\d+(?= )/.exec(bytes.toString('latin1', at, at + 20))?.[0] ?? Number.NaN)
    const found = Number.isInteger(length) ? /^\d+ ([^=]+)=(.*)\n$/s.exec(bytes.toString('utf8', at, at + length)) : null
    if (found?.[1] === undefined || found[2] === undefined) throw invalid('an extended header is malformed')
    records.set(found[1], found[2])
    at += length
  }
  return records
}
