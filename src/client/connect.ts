import { createConnection, type Socket } from 'node:net'
import { CODES, isErrorCode } from '../core/codes.ts'
import { AppError, errnoOf, messageOf } from '../core/errors.ts'
import { assertSocketPath } from '../core/socket-path.ts'
import { createLineDecoder, FRAME_LIMIT, toFrame } from '../protocol/frame.ts'

/** What this side speaks; protocol/common.ts has the same number behind zod, which no client loads. */
export const CLIENT_PROTOCOL = 1

/** A reply comes from the host, which we trust; the limit only bounds what a broken one could make us keep. */
const REPLY_LIMIT = 64 * 1024 * 1024
const HELLO_TIMEOUT_MS = 10_000

export interface CallOptions {
  /** Stops the wait; the host may carry the request out all the same. */
  readonly signal?: AbortSignal | undefined
}

/** One connection of many requests, on the bus or the control socket. */
export interface CallClient extends AsyncDisposable {
  /** The result of hello. */
  readonly hello: unknown
  /** Resolves when the connection is closed, by either side. */
  readonly closed: Promise<void>
  /** Throws AppError with the host's code; `host-not-running` when the connection is or gets closed. */
  call(method: string, params?: object, options?: CallOptions): Promise<unknown>
  /** Closes the connection; what is in flight is rejected. Idempotent. */
  close(): void
}

interface ConnectOptions extends CallOptions {
  /** From connect to the answer to hello. */
  readonly helloTimeoutMs?: number
}

interface Pending {
  readonly resolve: (result: unknown) => void
  readonly reject: (error: unknown) => void
}

const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)

/** The refusal that a reply carries; a code that this version does not know keeps its words. */
function toError(reply: Readonly<Record<string, unknown>>): AppError {
  const code = textOf(reply.error) ?? 'internal'
  const why = textOf(reply.why)
  const hint = textOf(reply.hint)
  const options = { ...(hint === undefined ? {} : { hint }), ...(reply.data === undefined ? {} : { data: reply.data }) }
  if (!isErrorCode(code)) return new AppError('internal', why === undefined ? code : `${code}: ${why}`, options)
  return new AppError(code, why ?? CODES[code].text, options)
}

const toClosed = (path: string, cause?: unknown): AppError =>
  new AppError('host-not-running', `the bus host closed ${path}`, { hint: 'mosaic bus start', ...(cause === undefined ? {} : { cause }) })

function toUnreachable(path: string, error: unknown): AppError {
  const why =
    errnoOf(error) === 'ENOENT'
      ? 'is not there'
      : errnoOf(error) === 'ECONNREFUSED'
        ? 'is left over from a bus host that is gone'
        : `fails: ${messageOf(error)}`
  return new AppError('host-not-running', `the bus host is not running (${path} ${why})`, { hint: 'mosaic bus start', cause: error })
}

function parseReply(line: Buffer): Readonly<Record<string, unknown>> {
  const value: unknown = JSON.parse(line.toString('utf8'))
  if (typeof value !== 'object' || value === null) throw new AppError('internal', 'the bus host sent what is no reply')
  return value as Record<string, unknown>
}

async function dial(path: string, signal: AbortSignal): Promise<Socket> {
  const socket = createConnection({ path })
  const onAbort = (): void => void socket.destroy(toFailure(signal.reason))
  signal.addEventListener('abort', onAbort, { once: true })
  try {
    await new Promise<void>((resolve, reject) => socket.once('connect', resolve).once('error', reject))
    return socket
  } catch (error) {
    throw signal.aborted ? signal.reason : toUnreachable(path, error)
  } finally {
    signal.removeEventListener('abort', onAbort)
    socket.removeAllListeners('error').removeAllListeners('connect')
  }
}

const toFailure = (reason: unknown): Error => (reason instanceof Error ? reason : new Error(String(reason)))

/** The replies to come, by the id of their request. */
interface Outstanding {
  readonly over: AppError | undefined
  add(): { readonly id: number; readonly answer: Promise<unknown> }
  onReply(reply: Readonly<Record<string, unknown>>): void
  fail(id: number, reason: unknown): void
  /** Rejects all there are; no request can be made from then on. */
  finish(error: AppError): void
}

function createOutstanding(): Outstanding {
  const pending = new Map<number, Pending>()
  let nextId = 0
  let over: AppError | undefined
  return {
    get over() {
      return over
    },
    add() {
      const id = nextId++
      return { id, answer: new Promise((resolve, reject) => pending.set(id, { resolve, reject })) }
    },
    onReply(reply) {
      const waiting = typeof reply.id === 'number' ? pending.get(reply.id) : undefined
      if (waiting === undefined) {
        // a refusal of no request of ours is about the connection, which the host closes next
        if (reply.ok === false) over ??= toError(reply)
        return
      }
      pending.delete(Number(reply.id))
      if (reply.ok === true) waiting.resolve(reply.result)
      else waiting.reject(toError(reply))
    },
    fail(id, reason) {
      pending.get(id)?.reject(reason)
      pending.delete(id)
    },
    finish(error) {
      over ??= error
      for (const { reject } of pending.values()) reject(over)
      pending.clear()
    },
  }
}

/** Feeds the replies of a socket to who waits for them. Resolves when it is closed. */
function readReplies(socket: Socket, path: string, outstanding: Outstanding): Promise<void> {
  const decoder = createLineDecoder(REPLY_LIMIT)
  socket.on('data', (chunk: Buffer) => {
    try {
      for (const line of decoder.push(chunk)) outstanding.onReply(parseReply(line))
    } catch (error) {
      outstanding.finish(new AppError('internal', `the bus host sent what is no reply: ${messageOf(error)}`, { cause: error }))
      socket.destroy()
    }
  })
  socket.on('error', (error) => outstanding.finish(toClosed(path, error)))
  return new Promise((resolve) => {
    socket.on('close', () => {
      outstanding.finish(toClosed(path))
      resolve()
    })
  })
}

/** Requests by id over one socket, answered in any order. */
function createCalls(socket: Socket, path: string): Omit<CallClient, 'hello'> {
  const outstanding = createOutstanding()
  const closed = readReplies(socket, path, outstanding)
  const close = (): void => void socket.destroy()

  const send = (method: string, params: object): { readonly id: number; readonly answer: Promise<unknown> } => {
    if (outstanding.over !== undefined) throw outstanding.over
    const added = outstanding.add()
    const frame = toFrame({ id: added.id, method, params })
    if (Buffer.byteLength(frame) <= FRAME_LIMIT.control) socket.write(frame)
    else outstanding.fail(added.id, new AppError('invalid-request', `${method} is larger than a frame may be (${String(FRAME_LIMIT.control)} bytes)`))
    return added
  }
  const call: CallClient['call'] = async (method, params = {}, { signal } = {}) => {
    signal?.throwIfAborted()
    const { id, answer } = send(method, params)
    if (signal === undefined) return answer
    const onAbort = (): void => outstanding.fail(id, signal.reason)
    signal.addEventListener('abort', onAbort, { once: true })
    try {
      return await answer
    } finally {
      signal.removeEventListener('abort', onAbort)
    }
  }
  return {
    closed,
    call,
    close,
    [Symbol.asyncDispose]: () => {
      close()
      return closed
    },
  }
}

/**
 * Connects to a socket of many requests and says hello. Throws `host-not-running` when nobody listens, `timeout` when the host
 * does not answer, and whatever hello was refused with. The path is at most 107 bytes (`socket-path-too-long`).
 */
export async function connectCalls(path: string, helloParams: object, options: ConnectOptions = {}): Promise<CallClient> {
  assertSocketPath(path)
  const { signal, helloTimeoutMs = HELLO_TIMEOUT_MS } = options
  const late = new AbortController()
  const timer = setTimeout(() => late.abort(new AppError('timeout', `the bus host did not answer on ${path}`, { hint: 'mosaic bus logs' })), helloTimeoutMs)
  const either = signal === undefined ? late.signal : AbortSignal.any([signal, late.signal])
  try {
    either.throwIfAborted()
    const calls = createCalls(await dial(path, either), path)
    try {
      return { ...calls, hello: await calls.call('hello', helloParams, { signal: either }) }
    } catch (error) {
      calls.close()
      throw error
    }
  } finally {
    clearTimeout(timer)
  }
}
