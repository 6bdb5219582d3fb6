import { on } from 'node:events'
import { watch } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { basename, dirname } from 'node:path'
import { errnoOf } from '../core/errors.ts'

const CHUNK_BYTES = 64 * 1024

/** Lines of a file that others append to; what was rotated away or cut short is begun again. */
interface Reader {
  /** The lines that are whole by now. */
  read(): Promise<string[]>
  close(): Promise<void>
}

async function openOrNull(path: string): Promise<FileHandle | null> {
  try {
    return await open(path, 'r')
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return null
    throw error
  }
}

function createReader(path: string): Reader {
  let file: FileHandle | null = null
  let position = 0
  let partial: Buffer = Buffer.alloc(0)

  const drain = async (handle: FileHandle): Promise<Buffer> => {
    const parts = [partial]
    for (;;) {
      const { bytesRead, buffer } = await handle.read(Buffer.alloc(CHUNK_BYTES), 0, CHUNK_BYTES, position)
      if (bytesRead === 0) return Buffer.concat(parts)
      position += bytesRead
      parts.push(buffer.subarray(0, bytesRead))
    }
  }
  const begin = async (next: FileHandle | null): Promise<void> => {
    await file?.close()
    file = next
    position = 0
    partial = Buffer.alloc(0)
  }
  const toLines = (bytes: Buffer): string[] => {
    const end = bytes.lastIndexOf(0x0a) + 1
    partial = bytes.subarray(end)
    const text = bytes.subarray(0, end).toString('utf8')
    return text === '' ? [] : text.replace(/\n$/, '').split('\n')
  }
  /** Has another file taken the name? The rest of the old one is read first. */
  const replacement = async (handle: FileHandle): Promise<FileHandle | null> => {
    const named = await openOrNull(path)
    if (named === null) return null
    const [now, before] = await Promise.all([named.stat(), handle.stat()])
    if (now.ino !== before.ino || now.dev !== before.dev || now.size < position) return named
    await named.close()
    return null
  }
  return {
    async read() {
      if (file === null) await begin(await openOrNull(path))
      if (file === null) return []
      const lines = toLines(await drain(file))
      const next = await replacement(file)
      if (next === null) return lines
      await begin(next)
      return [...lines, ...toLines(await drain(next))]
    },
    close: () => begin(null),
  }
}

/** The last `count` lines of a file, or all of it. ENOENT is the caller's to judge. */
export async function readLines(path: string, count: number | undefined): Promise<string[]> {
  const file = await open(path, 'r')
  try {
    const text = (await file.readFile('utf8')).replace(/\n$/, '')
    const lines = text === '' ? [] : text.split('\n')
    return count === undefined ? lines : lines.slice(Math.max(0, lines.length - count))
  } finally {
    await file.close()
  }
}

/** The last `count` lines of a file and then every line that is added, until the signal; the file need not be there yet. */
export async function* followLines(path: string, count: number | undefined, signal: AbortSignal): AsyncGenerator<string> {
  const reader = createReader(path)
  // listening begins here, before the first read, so that nothing falls between them
  const watcher = watch(dirname(path))
  const changes = on(watcher, 'change', { signal }) as AsyncIterable<readonly [string, string | null]>
  try {
    const first = await reader.read()
    yield* count === undefined ? first : first.slice(Math.max(0, first.length - count))
    for await (const [, name] of changes) if (name === null || name === basename(path)) yield* await reader.read()
  } finally {
    watcher.close()
    await reader.close()
  }
}
