import type { FileHandle } from 'node:fs/promises'
import { createConnection, type Socket } from 'node:net'
import { CODES, isErrorCode } from '../../core/codes.ts'
import { AppError, errnoOf, messageOf } from '../../core/errors.ts'
import { createLineDecoder, parseFrame, toFrame } from '../../protocol/frame.ts'

type Frame = Readonly<Record<string, unknown>>

/** How the host's git socket is reached, and asked: with the capability. */
export interface GitDoor {
  readonly path: string
  readonly toRequest: (header: object) => object
  /** Ends every exchange that is under way. */
  readonly signal: AbortSignal
}

/** One request that was answered with ok. */
export interface Exchange {
  readonly reply: Frame
  /** What follows the reply. Not read, it waits where it is. */
  readonly body: AsyncIterable<Buffer>
  readonly close: () => void
}

/** A reply names every tip that may be seen: some thousands of tasks. */
const REPLY_BYTES = 16 * 1024 * 1024

interface Answered {
  readonly frame: Frame
  readonly rest: Buffer
}

async function readReply(chunks: AsyncIterator<Buffer>): Promise<Answered> {
  const decoder = createLineDecoder(REPLY_BYTES)
  for (let next = await chunks.next(); next.done !== true; next = await chunks.next()) {
    const found = decoder.pushOne(next.value)
    if (found !== undefined) return { frame: parseFrame(found.line), rest: found.rest }
  }
  throw new AppError('host-not-running', 'the connection closed without an answer')
}

async function* remaining(rest: Buffer, chunks: AsyncIterable<Buffer>): AsyncIterable<Buffer> {
  if (rest.length > 0) yield rest
  yield* chunks
}

function toUnreachable(error: unknown): AppError {
  if (error instanceof AppError) return error
  return new AppError('host-not-running', `the git socket fails: ${errnoOf(error) ?? messageOf(error)}`)
}

/** The refusal that a reply carries; a code that this version does not know keeps its words. */
function toRefusal({ error, why, text }: Frame): AppError {
  const code = typeof error === 'string' ? error : 'internal'
  const words = typeof why === 'string' ? why : typeof text === 'string' ? text : ''
  return isErrorCode(code) ? new AppError(code, words === '' ? CODES[code].text : words) : new AppError('internal', `${code}: ${words}`)
}

function dial({ path, toRequest, signal }: GitDoor, header: object): Socket {
  const socket = createConnection({ path, allowHalfOpen: true, signal })
  socket.write(toFrame(toRequest(header)))
  return socket
}

/**
 * Sends one request and, behind it, a file; resolves with the reply, which may come before all of the file is sent. Throws what the
 * other side refused; `not-permitted` where there is no way to it.
 */
export async function exchange(door: GitDoor | null, header: object, file?: FileHandle): Promise<Exchange> {
  if (door === null) throw new AppError('not-permitted', 'this role has neither git.push.working nor review.verdict')
  const socket = dial(door, header)
  const upload = file?.createReadStream({ start: 0, autoClose: false })
  upload?.on('error', (error: Error) => void socket.destroy(error)).pipe(socket, { end: false })
  const chunks = socket.iterator({ destroyOnReturn: false }) as AsyncIterableIterator<Buffer>
  try {
    const { frame, rest } = await readReply(chunks)
    if (frame.ok !== true) throw toRefusal(frame)
    return { reply: frame, body: remaining(rest, chunks), close: () => void socket.destroy() }
  } catch (error) {
    socket.destroy()
    throw toUnreachable(error)
  } finally {
    upload?.unpipe(socket)
    upload?.destroy()
  }
}
