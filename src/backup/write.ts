import { createHash, randomBytes } from 'node:crypto'
import { type FileHandle, link, open, rename, rm, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { syncPath } from '../core/durable.ts'
import { AppError, errnoOf } from '../core/errors.ts'
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

const taken = (path: string): AppError => new AppError('config-exists', `${path} is there already`, { hint: 'choose another name' })
const isThere = (path: string): Promise<boolean> =>
  stat(path).then(
    () => true,
    () => false,
  )

/** link(2) never replaces anything; where a file system has no hard links, a look must do. */
async function giveName(temporary: string, path: string): Promise<void> {
  try {
    await link(temporary, path)
    await rm(temporary)
  } catch (error) {
    if (errnoOf(error) === 'EEXIST') throw taken(path)
    if (!['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK'].includes(errnoOf(error) ?? '')) throw error
    if (await isThere(path)) throw taken(path)
    await rename(temporary, path)
  }
}

async function openTemporary(path: string): Promise<{ readonly temporary: string; readonly out: FileHandle }> {
  if (await isThere(path)) throw taken(path)
  const temporary = `${path}.${randomBytes(4).toString('hex')}.partial`
  const out = await open(temporary, 'wx', 0o600).catch((error: unknown) => {
    if (errnoOf(error) === 'ENOENT') throw new AppError('usage', `there is no directory ${dirname(path)}`, { hint: `mkdir -p ${dirname(path)}` })
    throw error
  })
  return { temporary, out }
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

/** Throws `config-exists` when there is something of that name, `usage` when its directory is missing, and whatever the signal aborts with. */
export async function openArchive(path: string, signal: AbortSignal): Promise<ArchiveWriter> {
  const { temporary, out } = await openTemporary(path)
  const members: Member[] = []
  const directories: string[] = []
  let named = false

  const add = async (member: string, sizeBytes: number, content: AsyncIterable<Buffer> | Iterable<Buffer>): Promise<void> => {
    const hash = createHash('sha256')
    await out.appendFile(toHeader({ path: member, kind: 'file', sizeBytes }))
    for await (const piece of content) {
      signal.throwIfAborted()
      hash.update(piece)
      await out.appendFile(piece)
    }
    await out.appendFile(Buffer.alloc(paddingOf(sizeBytes)))
    members.push({ path: member, sizeBytes, sha256: hash.digest('hex') })
  }
  return {
    members,
    directories,
    async directory(member) {
      await out.appendFile(toHeader({ path: member, kind: 'directory', sizeBytes: 0 }))
      directories.push(member)
    },
    bytes: (member, content) => add(member, content.length, [content]),
    async file(member, source) {
      const { size } = await source.stat()
      await add(member, size, piecesOf(source, size))
    },
    async finish(manifest) {
      const bytes = Buffer.from(`${JSON.stringify(manifest, null, 2)}\n`)
      await out.appendFile(Buffer.concat([toHeader({ path: MANIFEST_MEMBER, kind: 'file', sizeBytes: bytes.length }), bytes]))
      await out.appendFile(Buffer.alloc(paddingOf(bytes.length) + 2 * BLOCK_BYTES))
      await out.sync()
      const { size } = await out.stat()
      await giveName(temporary, path)
      named = true
      await syncPath(dirname(path))
      return size
    },
    async [Symbol.asyncDispose]() {
      await out.close()
      if (!named) await rm(temporary, { force: true })
    },
  }
}
