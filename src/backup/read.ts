import { type FileHandle, open } from 'node:fs/promises'
import { AppError } from '../core/errors.ts'
import { toFileError } from '../core/file-error.ts'
import { BLOCK_BYTES, paddingOf, parseHeader, parseRecords, type TarEntry } from './tar.ts'

const CHUNK_BYTES = 1024 * 1024
/** Names and sizes take no more; whoever writes a longer one wants our memory. */
const RECORDS_BYTES = 64 * 1024

interface ArchiveEntry extends TarEntry {
  /** The content, in pieces; it may be left unread. Throws `backup-invalid` where the file ends before it. */
  readonly content: () => AsyncGenerator<Buffer>
}

async function* contentAt(file: FileHandle, from: number, sizeBytes: number): AsyncGenerator<Buffer> {
  for (let done = 0; done < sizeBytes;) {
    const { bytesRead, buffer } = await file.read(Buffer.alloc(Math.min(CHUNK_BYTES, sizeBytes - done)), 0, undefined, from + done)
    if (bytesRead === 0) throw new AppError('backup-invalid', 'it is cut short')
    yield buffer.subarray(0, bytesRead)
    done += bytesRead
  }
}

async function readAt(file: FileHandle, from: number, sizeBytes: number): Promise<Buffer> {
  const pieces: Buffer[] = []
  for await (const piece of contentAt(file, from, sizeBytes)) pieces.push(piece)
  return Buffer.concat(pieces)
}

async function* entriesOf(file: FileHandle): AsyncGenerator<ArchiveEntry> {
  let at = 0
  let more: ReadonlyMap<string, string> = new Map()
  for (;;) {
    const header = parseHeader(await readAt(file, at, BLOCK_BYTES))
    at += BLOCK_BYTES
    if (header === null) return
    const sizeBytes = Number(more.get('size') ?? header.sizeBytes)
    const from = at
    at += sizeBytes + paddingOf(sizeBytes)
    if (header.type === 'x') {
      if (sizeBytes > RECORDS_BYTES) throw new AppError('backup-invalid', 'an extended header is too long')
      more = parseRecords(await readAt(file, from, sizeBytes))
      continue
    }
    if (header.type !== '0' && header.type !== '5') throw new AppError('backup-invalid', `it holds an entry of type ${header.type}`)
    const path = (more.get('path') ?? header.path).replace(/\/$/, '')
    more = new Map()
    yield { path, kind: header.type === '5' ? 'directory' : 'file', sizeBytes, content: () => contentAt(file, from, sizeBytes) }
  }
}

/** Every entry of an archive, in order. Throws `backup-invalid`, naming the file; `file-unusable` when it cannot be read. */
export async function* readArchive(path: string): AsyncGenerator<ArchiveEntry> {
  const file = await open(path, 'r').catch((error: unknown) => {
    throw toFileError(error, path)
  })
  try {
    yield* entriesOf(file)
  } catch (error) {
    if (!(error instanceof AppError) || error.code !== 'backup-invalid') throw toFileError(error, path)
    throw new AppError('backup-invalid', `${path} is no backup that can be restored: ${error.message}`, { cause: error })
  } finally {
    await file.close()
  }
}
