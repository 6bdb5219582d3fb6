import { on } from 'node:events'
import { type Stats, watch } from 'node:fs'
import { type FileHandle, open, readFile } from 'node:fs/promises'
import { basename, dirname } from 'node:path'
import { errnoOf } from '../core/errors.ts'

const CHUNK_BYTES = 64 * 1024
/** By so many bytes before the place a copy is known as one of the file that was read. */
const RECENT_BYTES = 128
/** `<path>.1`, `<path>.2` … are what a log was before. */
const MOST_ROTATED = 9

const isSame = (one: Stats, other: Stats): boolean => one.ino === other.ino && one.dev === other.dev

/** Lines of a file that others append to; goes on with what takes its name, or what it holds once it was emptied. */
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

/** Where to read on. */
interface Place {
  readonly file: FileHandle
  readonly position: number
  /** The last bytes before it. */
  readonly recent: Buffer
}

const fromStart = (file: FileHandle): Place => ({ file, position: 0, recent: Buffer.alloc(0) })

/** The same place in a copy that was made before the file was emptied; none when this is no copy of it. */
async function inCopy(path: string, { position, recent }: Place): Promise<readonly Place[]> {
  const copy = await openOrNull(`${path}.1`)
  if (copy === null) return []
  const { buffer } = await copy.read(Buffer.alloc(recent.length), 0, recent.length, position - recent.length)
  if (buffer.equals(recent)) return [{ file: copy, position, recent }]
  await copy.close()
  return []
}

/** What came after this place: what was put aside since it was read, the oldest first, and who has the name now. */
async function successorsOf(path: string, place: Place): Promise<readonly Place[]> {
  const named = await openOrNull(path)
  if (named === null) return []
  const [now, before] = await Promise.all([named.stat(), place.file.stat()])
  if (!isSame(now, before)) return [...(await betweenOf(path, before)), named].map(fromStart)
  if (now.size < place.position) return [...(await inCopy(path, place)), fromStart(named)]
  await named.close()
  return []
}

/** What a file holds from a place on, and the place after it. */
async function drain({ file, position, recent }: Place): Promise<{ readonly bytes: Buffer; readonly end: Place }> {
  const parts: Buffer[] = []
  for (let at = position; ;) {
    const { bytesRead, buffer } = await file.read(Buffer.alloc(CHUNK_BYTES), 0, CHUNK_BYTES, at)
    if (bytesRead > 0) {
      parts.push(buffer.subarray(0, bytesRead))
      at += bytesRead
      continue
    }
    const bytes = Buffer.concat(parts)
    return { bytes, end: { file, position: at, recent: Buffer.concat([recent, bytes]).subarray(-RECENT_BYTES) } }
  }
}

function createReader(path: string): Reader {
  let place: Place | null = null
  let partial: Buffer = Buffer.alloc(0)

  const readFrom = async (next: Place): Promise<string[]> => {
    // a torn line is gone on with in its file and in a copy of it, not in another file
    if (next.position === 0) partial = Buffer.alloc(0)
    if (place?.file !== next.file) await place?.file.close()
    place = next
    const { bytes, end } = await drain(next)
    place = end
    const known = Buffer.concat([partial, bytes])
    const length = known.lastIndexOf(0x0a) + 1
    partial = known.subarray(length)
    const text = known.subarray(0, length).toString('utf8')
    return text === '' ? [] : text.replace(/\n$/, '').split('\n')
  }
  return {
    async read() {
      const file = place === null ? await openOrNull(path) : null
      const start = file === null ? place : fromStart(file)
      if (start === null) return []
      const lines = await readFrom(start)
      for (const next of await successorsOf(path, place ?? start)) lines.push(...(await readFrom(next)))
      return lines
    },
    async close() {
      await place?.file.close()
    },
  }
}

async function linesOf(path: string): Promise<string[]> {
  const text = (await readFile(path, 'utf8')).replace(/\n$/, '')
  return text === '' ? [] : text.split('\n')
}

/** The last `count` lines of what was put aside of a log. */
async function linesBefore(path: string, count: number): Promise<string[]> {
  let lines: string[] = []
  for (let n = 1; n <= MOST_ROTATED && lines.length < count; n++) {
    const earlier = await linesOf(`${path}.${String(n)}`).catch((error: unknown) => {
      if (errnoOf(error) === 'ENOENT') return []
      throw error
    })
    if (earlier.length === 0) break
    lines = [...earlier, ...lines]
  }
  return lines.slice(Math.max(0, lines.length - count))
}

/** The last `count` lines of a log, begun in what was put aside of it when the file has fewer. */
const lastLines = async (path: string, lines: readonly string[], count: number): Promise<string[]> => [
  ...(await linesBefore(path, count - lines.length)),
  ...lines.slice(Math.max(0, lines.length - count)),
]

/** The last `count` lines of a log, or all of it, with what was put aside of it. ENOENT is the caller's to judge. */
export const readLines = async (path: string, count = Infinity): Promise<string[]> => lastLines(path, await linesOf(path), count)

/** Goes on until the one aborts, which is an error, or the other: then nothing more comes, and what is there is still read. */
interface Until {
  readonly signal: AbortSignal
  readonly over?: AbortSignal
}

/** The last `count` lines of a log and then every line that is added; the file need not be there yet. */
export async function* followLines(path: string, count = Infinity, { signal, over = new AbortController().signal }: Until): AsyncGenerator<string> {
  const reader = createReader(path)
  // listening begins here, before the first read, so that nothing falls between them
  const watcher = watch(dirname(path))
  const changes = on(watcher, 'change', { signal: AbortSignal.any([signal, over]) }) as AsyncIterable<readonly [string, string | null]>
  try {
    yield* await lastLines(path, await reader.read(), count)
    for await (const [, name] of changes) if (name === null || name === basename(path)) yield* await reader.read()
  } catch (error) {
    if (signal.aborted || !over.aborted) throw error
    yield* await reader.read()
  } finally {
    watcher.close()
    await reader.close()
  }
}
