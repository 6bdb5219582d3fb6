import { on } from 'node:events'
import { type Stats, watch } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { basename, dirname } from 'node:path'
import { errnoOf } from '../core/errors.ts'

const CHUNK_BYTES = 64 * 1024
/** `<path>.1`, `<path>.2` … are what a log was before. */
const MOST_ROTATED = 9

const isSame = (one: Stats, other: Stats): boolean => one.ino === other.ino && one.dev === other.dev

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

/** What was rotated away after this file, the oldest first. */
async function betweenOf(path: string, before: Stats): Promise<readonly FileHandle[]> {
  const between: FileHandle[] = []
  for (let n = 1; n <= MOST_ROTATED; n++) {
    const earlier = await openOrNull(`${path}.${String(n)}`)
    if (earlier === null) break
    if (isSame(await earlier.stat(), before)) {
      await earlier.close()
      return between
    }
    between.unshift(earlier)
  }
  // it is none of them, so they are no successors of it
  await Promise.all(between.map((earlier) => earlier.close()))
  return []
}

/** The files that came after this one: those that were rotated away since it was read, the oldest first, and who has the name now. */
async function successorsOf(path: string, handle: FileHandle, position: number): Promise<readonly FileHandle[]> {
  const named = await openOrNull(path)
  if (named === null) return []
  const [now, before] = await Promise.all([named.stat(), handle.stat()])
  if (isSame(now, before) && now.size >= position) {
    await named.close()
    return []
  }
  return isSame(now, before) ? [named] : [...(await betweenOf(path, before)), named]
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
  return {
    async read() {
      if (file === null) await begin(await openOrNull(path))
      if (file === null) return []
      const lines = toLines(await drain(file))
      for (const next of await successorsOf(path, file, position)) {
        await begin(next)
        lines.push(...toLines(await drain(next)))
      }
      return lines
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

/** Goes on until the one aborts, which is an error, or the other: then nothing more comes, and what is there is still read. */
interface Until {
  readonly signal: AbortSignal
  readonly over?: AbortSignal
}

/** The last `count` lines of a file and then every line that is added; the file need not be there yet. */
export async function* followLines(path: string, count: number | undefined, { signal, over = new AbortController().signal }: Until): AsyncGenerator<string> {
  const reader = createReader(path)
  // listening begins here, before the first read, so that nothing falls between them
  const watcher = watch(dirname(path))
  const changes = on(watcher, 'change', { signal: AbortSignal.any([signal, over]) }) as AsyncIterable<readonly [string, string | null]>
  try {
    const first = await reader.read()
    yield* count === undefined ? first : first.slice(Math.max(0, first.length - count))
    for await (const [, name] of changes) if (name === null || name === basename(path)) yield* await reader.read()
  } catch (error) {
    if (signal.aborted || !over.aborted) throw error
    yield* await reader.read()
  } finally {
    watcher.close()
    await reader.close()
  }
}
