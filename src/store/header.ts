/** 'Mosa' as the application_id of the database's header. */
export const APPLICATION_ID = 0x4d6f7361

const MAGIC = 'SQLite format 3\0'
export const HEADER_BYTES = 100

export interface Header {
  readonly pageBytes: number
  /** Pages that the header says the file has; null where the header does not vouch for the number. */
  readonly pages: number | null
  readonly applicationId: number
  readonly userVersion: number
}

/** The first 100 bytes of a database (sqlite.org/fileformat2.html, 1.3); null when they begin no SQLite database. */
export function parseHeader(bytes: Buffer): Header | null {
  if (bytes.length < HEADER_BYTES || bytes.toString('latin1', 0, MAGIC.length) !== MAGIC) return null
  const size = bytes.readUInt16BE(16)
  const vouched = bytes.readUInt32BE(24) === bytes.readUInt32BE(92)
  return {
    pageBytes: size === 1 ? 65536 : size,
    pages: vouched ? bytes.readUInt32BE(28) : null,
    applicationId: bytes.readUInt32BE(68),
    userVersion: bytes.readUInt32BE(60),
  }
}

const WAL_HEADER_BYTES = 32
const FRAME_HEADER_BYTES = 24
const SALT_AT = 16

export type ReadAt = (offset: number, length: number) => Buffer

/**
 * The header that a write-ahead log holds for page 1, if it holds one: a migration that was committed and not yet
 * checkpointed shows only there. Frames of an earlier use of the file have other salts and end the log.
 */
export function walHeader(readAt: ReadAt): Header | null {
  const start = readAt(0, WAL_HEADER_BYTES)
  if (start.length < WAL_HEADER_BYTES) return null
  const pageBytes = start.readUInt32BE(8)
  const salt = start.subarray(SALT_AT, SALT_AT + 8)
  let found: Header | null = null
  for (let at = WAL_HEADER_BYTES; pageBytes >= 512; at += FRAME_HEADER_BYTES + pageBytes) {
    const frame = readAt(at, FRAME_HEADER_BYTES)
    if (frame.length < FRAME_HEADER_BYTES || !frame.subarray(8, 16).equals(salt)) break
    if (frame.readUInt32BE(0) === 1) found = parseHeader(readAt(at + FRAME_HEADER_BYTES, HEADER_BYTES)) ?? found
  }
  return found
}
