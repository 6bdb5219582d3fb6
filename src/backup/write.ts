import { createHash } from 'node:crypto'
import type { FileHandle } from 'node:fs/promises'
import { AppError } from '../core/errors.ts'
import { toFileError } from '../core/file-error.ts'
import { openNewFile } from '../core/new-file.ts'
import { MANIFEST_MEMBER, type Manifest, type Member } from './manifest.ts'
import { BLOCK_BYTES, paddingOf, toHeader } from './tar.ts'

const CHUNK_BYTES = 1024 * 1024

/** A tar file under a temporary name; it gets its own once it is whole, or is gone. */
export interface ArchiveWriter extends AsyncDisposable {
  readonly members: readonly Member[]
  readonly directories: readonly string[]
  directory(path: string): Promise<void>
  bytes(path: string, content: Buffer): Promise<void>
  /** A file of ours that nobody changes meanwhile. Throws when it does not have the size that it had when it was opened. */
  file(path: string, source: FileHandle): Promise<void>
  /** Writes the manifest, makes all of it durable and gives the archive its name. Its size. Throws `config-exists`. */
  finish(manifest: Manifest): Promise<number>
}

/** The content of a file in pieces; exactly as many bytes as it had at first. */
async function* piecesOf(source: FileHandle, sizeBytes: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < sizeBytes;) {
    const { bytesRead, buffer } = await source.read(Buffer.alloc(Math.min(CHUNK_BYTES, sizeBytes - at)), 0, undefined, at)
    if (bytesRead === 0) throw new AppError('busy', 'a file became shorter while it was copied')
    yield buffer.subarray(0, bytesRead)
    at += bytesRead
  }
}

/** Throws `config-exists` when there is something of that name, `file-unusable`, `disk-full`, and whatever the signal aborts with. */
export async function openArchive(path: string, signal: AbortSignal): Promise<ArchiveWriter> {
  const file = await openNewFile(path)
  const members: Member[] = []
  const directories: string[] = []

  const write = async (bytes: Buffer): Promise<void> => {
    await file.handle.appendFile(bytes).catch((error: unknown) => {
      throw toFileError(error, path)
    })
  }
  const add = async (member: string, sizeBytes: number, content: AsyncIterable<Buffer> | Iterable<Buffer>): Promise<void> => {
    const hash = createHash('sha256')
    await write(toHeader({ path: member, kind: 'file', sizeBytes }))
    for await (const piece of content) {
      signal.throwIfAborted()
      hash.update(piece)
      await write(piece)
    }
    await write(Buffer.alloc(paddingOf(sizeBytes)))
    members.push({ path: member, sizeBytes, sha256: hash.digest('hex') })
  }
  return {
    members,
    directories,
    async directory(member) {
      await write(toHeader({ path: member, kind: 'directory', sizeBytes: 0 }))
      directories.push(member)
    },
    bytes: (member, content) => add(member, content.length, [content]),
    async file(member, source) {
      const { size } = await source.stat()
      await add(member, size, piecesOf(source, size))
    },
    async finish(manifest) {
      const bytes = Buffer.from(`${JSON.stringify(manifest, null, 2)}\n`)
      await write(Buffer.concat([toHeader({ path: MANIFEST_MEMBER, kind: 'file', sizeBytes: bytes.length }), bytes]))
      await write(Buffer.alloc(paddingOf(bytes.length) + 2 * BLOCK_BYTES))
      const { size } = await file.handle.stat()
      await file.publish()
      return size
    },
    [Symbol.asyncDispose]: () => file[Symbol.asyncDispose](),
  }
}
