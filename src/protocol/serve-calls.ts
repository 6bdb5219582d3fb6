import { setMaxListeners } from 'node:events'
import type { Socket } from 'node:net'
import { AppError, codeOf, messageOf } from '../core/errors.ts'
import type { Log } from '../core/log.ts'
import { type Call, callSchema, IN_FLIGHT, PAGE_BYTES, type Reply, type RequestId } from './common.ts'
import { createLineDecoder, type LineDecoder, parseFrame, toFrame } from './frame.ts'

/** What a socket of many requests supplies; framing, ids, limits and errors are the same on all of them. */
export interface CallServer<Session> {
  readonly frameLimit: number
  /** From accept to the first whole frame. */
  readonly firstFrameMs: number
  readonly log: Log
  /** Judges the first frame. What it throws is replied, and the connection closed. */
  hello(call: Call, signal: AbortSignal): Promise<{ readonly session: Session; readonly result: unknown }>
  /** Answers one request, now or as a promise; what it throws is replied. `signal` aborts when the connection is gone. */
  call(session: Session, call: Call, signal: AbortSignal): unknown
  closed?(session: Session): void
  /** Aborts when no more is taken: waits end, what was asked is answered, and every connection ends with its last answer. */
  readonly closing?: AbortSignal
}

/** Refusals are told to the peer with their reason; what is our own fault only goes to the log. */
function toRefusal(id: RequestId, error: unknown, log: Log): Reply {
  if (!(error instanceof AppError)) {
    log.error({ err: error }, 'request failed')
    return { id, ok: false, error: 'internal' }
  }
  const { code, message, hint, data } = error
  return {
    id,
    ok: false,
    error: code,
    ...(message === '' ? {} : { why: message }),
    ...(hint === undefined ? {} : { hint }),
    ...(data === undefined ? {} : { data }),
  }
}

const idOf = (frame: Record<string, unknown>): RequestId => (typeof frame.id === 'string' || typeof frame.id === 'number' ? frame.id : 0)

function toCall(frame: Record<string, unknown>): Call {
  const parsed = callSchema.safeParse(frame)
  if (!parsed.success) throw new AppError('invalid-request', 'a request is {"id","method","params"}')
  return parsed.data
}

/** How long a peer may keep its side open once the host has ended its own. */
const LINGER_MS = 1000

/** One accepted connection: greeted once, then any number of requests at a time, up to the limit. */
class Exchange<Session> {
  readonly #socket: Socket
  readonly #server: CallServer<Session>
  readonly #decoder: LineDecoder
  readonly #gone = new AbortController()
  readonly #deadline: NodeJS.Timeout
  /** What arrives while the greeting is judged, or while the peer has a page of replies to read. */
  readonly #pending: Buffer[] = []
  #session: { readonly value: Session } | undefined
  #state: 'waiting' | 'greeting' | 'open' | 'ending' = 'waiting'
  /** Taken and not yet answered on the wire. */
  #inFlight = 0
  /** Replies that the end of this turn sends. */
  #replies: string[] = []
  #replyLength = 0
  #halfClosed = false

  constructor(socket: Socket, server: CallServer<Session>) {
    this.#socket = socket
    this.#server = server
    this.#decoder = createLineDecoder(server.frameLimit)
    // every request in flight may listen for the end of the connection
    setMaxListeners(2 * IN_FLIGHT, this.#gone.signal)
    this.#deadline = setTimeout(() => socket.destroySoon(), server.firstFrameMs)
    socket.on('data', this.#onData)
    socket.on('drain', () => this.#proceed())
    socket.on('error', (error) => server.log.debug({ err: error }, 'connection failed'))
    socket.on('end', () => this.#onEnd())
    socket.on('close', () => this.#onClose())
    if (server.closing?.aborted === true) this.#onClosing()
    else server.closing?.addEventListener('abort', this.#onClosing, { once: true })
  }

  readonly #onData = (chunk: Buffer): void => {
    if (this.#state === 'greeting' || this.#pending.length > 0) return void this.#pending.push(chunk)
    try {
      this.#takeLines(chunk)
    } catch (error) {
      this.#end({ id: 0, ok: false, error: codeOf(error), why: messageOf(error) })
    }
  }

  #takeLines(chunk: Buffer): void {
    for (let rest = chunk; this.#state === 'waiting' || this.#state === 'open';) {
      if (this.#isFull()) {
        this.#hold(rest)
        return
      }
      const found = this.#decoder.pushOne(rest)
      if (found === undefined) return
      rest = found.rest
      const frame = parseFrame(found.line)
      if (this.#session !== undefined) this.#answer(this.#session.value, frame)
      else {
        if (rest.length > 0) this.#pending.push(rest)
        void this.#greet(frame)
      }
    }
  }

  /** Has the peer a page or more still to read? Small requests for large pages would fill the memory of the host. */
  #isFull(): boolean {
    return this.#socket.writableLength + this.#replyLength >= PAGE_BYTES
  }

  /** A peer that stops reading stops being read; what has come goes on when it has read. */
  #hold(rest: Buffer): void {
    if (rest.length > 0) this.#pending.push(rest)
    this.#socket.pause()
  }

  /** The end of a greeting, of a turn's write or of a peer's pause: on with what was held. */
  #proceed(): void {
    for (const chunk of this.#pending.splice(0)) this.#onData(chunk)
    if (!this.#isFull()) this.#socket.resume()
  }

  async #greet(frame: Record<string, unknown>): Promise<void> {
    this.#state = 'greeting'
    this.#inFlight++
    clearTimeout(this.#deadline)
    this.#socket.pause()
    try {
      const call = toCall(frame)
      const { session, result } = await this.#server.hello(call, this.#gone.signal)
      if (this.#socket.destroyed) {
        this.#server.closed?.(session)
        return
      }
      this.#session = { value: session }
      this.#state = 'open'
      this.#socket.write(toFrame({ id: call.id, ok: true, result }))
      this.#inFlight--
      this.#proceed()
      this.#endIfIdle()
    } catch (error) {
      this.#end(toRefusal(idOf(frame), error, this.#server.log))
    }
  }

  /** No promise of its own around the answer: the few that a message takes were a tenth of what it costs. */
  #answer(session: Session, frame: Record<string, unknown>): void {
    const refuse = (error: unknown): void => this.#reply(toRefusal(idOf(frame), error, this.#server.log))
    if (++this.#inFlight > IN_FLIGHT) {
      this.#reply({ id: idOf(frame), ok: false, error: 'too-many-requests' })
      return
    }
    try {
      const call = toCall(frame)
      const reply = (result: unknown): void => this.#reply({ id: call.id, ok: true, result })
      const answer = this.#server.call(session, call, this.#gone.signal)
      if (answer instanceof Promise) answer.then(reply).catch(refuse)
      else reply(answer)
    } catch (error) {
      refuse(error)
    }
  }

  /** What one turn answers goes out in one write: a system call for each reply was a fifth of what a message costs. */
  #reply(value: Reply): void {
    const text = toFrame(value)
    this.#replyLength += text.length
    if (this.#replies.push(text) === 1) process.nextTick(this.#flush)
  }

  readonly #flush = (): void => {
    const replies = this.#replies
    this.#replies = []
    this.#replyLength = 0
    this.#inFlight -= replies.length
    if (replies.length > 0 && !this.#socket.destroyed && this.#state !== 'ending') {
      if (!this.#socket.write(replies.join(''))) this.#socket.pause()
      else if (this.#pending.length > 0) this.#proceed()
    }
    this.#endIfIdle()
  }

  #end(value: Reply): void {
    clearTimeout(this.#deadline)
    this.#flush()
    this.#state = 'ending'
    this.#socket.end(toFrame(value))
    // the peer may never close its side; what it still sends is dropped
    this.#socket.off('data', this.#onData)
    this.#socket.resume()
    setTimeout(() => this.#socket.destroy(), LINGER_MS).unref()
  }

  /** Whoever has ended its side waits for nothing more: what was asked is answered, long polls end now. */
  #onEnd(): void {
    clearTimeout(this.#deadline)
    this.#halfClosed = true
    this.#gone.abort()
    this.#endIfIdle()
  }

  /** The host takes no more; a peer that still writes is not heard. */
  readonly #onClosing = (): void => {
    this.#socket.off('data', this.#onData)
    this.#socket.resume()
    this.#onEnd()
  }

  #endIfIdle(): void {
    if (this.#halfClosed && this.#inFlight === 0 && this.#pending.length === 0) this.#socket.end()
  }

  #onClose(): void {
    clearTimeout(this.#deadline)
    this.#server.closing?.removeEventListener('abort', this.#onClosing)
    this.#gone.abort()
    if (this.#session !== undefined) this.#server.closed?.(this.#session.value)
  }
}

/** Serves one accepted connection until it closes. Nothing is queued for a peer without bound. */
export function serveCalls<Session>(socket: Socket, server: CallServer<Session>): void {
  new Exchange(socket, server)
}
