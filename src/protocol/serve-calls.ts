import type { Socket } from 'node:net'
import { AppError, codeOf, messageOf } from '../core/errors.ts'
import type { Log } from '../core/log.ts'
import { type Call, callSchema, IN_FLIGHT, type Reply, type RequestId } from './common.ts'
import { createLineDecoder, parseFrame, toFrame } from './frame.ts'

/** What a socket of many requests supplies; framing, ids, limits and errors are the same on all of them. */
export interface CallServer<Session> {
  readonly frameLimit: number
  /** From accept to the first whole frame. */
  readonly firstFrameMs: number
  readonly log: Log
  /** Judges the first frame. What it throws is replied, and the connection closed. */
  hello(call: Call, signal: AbortSignal): Promise<{ readonly session: Session; readonly result: unknown }>
  /** Answers one request. `signal` aborts when the connection is gone. */
  call(session: Session, call: Call, signal: AbortSignal): Promise<unknown>
  closed?(session: Session): void
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

/** Serves one accepted connection until it closes. A peer that stops reading stops being read; nothing is queued for it without bound. */
export function serveCalls<Session>(socket: Socket, server: CallServer<Session>): void {
  const { log } = server
  const gone = new AbortController()
  const decoder = createLineDecoder(server.frameLimit)
  let session: { readonly value: Session } | undefined
  let greeting = false
  let inFlight = 0
  let ending = false
  let halfClosed = false

  const deadline = setTimeout(() => socket.destroySoon(), server.firstFrameMs)
  const reply = (value: Reply): void => {
    if (socket.destroyed || ending) return
    if (!socket.write(toFrame(value))) socket.pause()
  }
  const end = (value?: Reply): void => {
    if (value !== undefined) reply(value)
    ending = true
    socket.end()
    // the peer may never close its side; what it still sends is dropped
    socket.removeListener('data', onData)
    socket.resume()
    setTimeout(() => socket.destroy(), 1000).unref()
  }
  const greet = async (frame: Record<string, unknown>): Promise<void> => {
    greeting = true
    socket.pause()
    try {
      const call = toCall(frame)
      const { session: opened, result } = await server.hello(call, gone.signal)
      if (socket.destroyed) return server.closed?.(opened)
      session = { value: opened }
      reply({ id: call.id, ok: true, result })
      socket.resume()
    } catch (error) {
      end(toRefusal(idOf(frame), error, log))
    }
  }
  const answer = async (opened: Session, frame: Record<string, unknown>): Promise<void> => {
    if (inFlight >= IN_FLIGHT) return reply({ id: idOf(frame), ok: false, error: 'too-many-requests' })
    inFlight++
    try {
      const call = toCall(frame)
      reply({ id: call.id, ok: true, result: await server.call(opened, call, gone.signal) })
    } catch (error) {
      reply(toRefusal(idOf(frame), error, log))
    } finally {
      inFlight--
      if (halfClosed && inFlight === 0) socket.end()
    }
  }
  const pending: Buffer[] = []
  const drainPending = (): void => {
    for (let chunk = pending.shift(); chunk !== undefined && !ending; chunk = pending.shift()) onData(chunk)
  }
  const onLine = (line: Buffer, rest: Buffer): boolean => {
    const frame = parseFrame(line)
    if (session !== undefined) {
      void answer(session.value, frame)
      return true
    }
    clearTimeout(deadline)
    if (rest.length > 0) pending.push(rest)
    void greet(frame).then(drainPending)
    return false
  }
  function onData(chunk: Buffer): void {
    if (greeting && session === undefined) return void pending.push(chunk)
    try {
      let rest = chunk
      for (;;) {
        const found = decoder.pushOne(rest)
        if (found === undefined) return
        rest = found.rest
        if (!onLine(found.line, rest)) return
      }
    } catch (error) {
      clearTimeout(deadline)
      end({ id: 0, ok: false, error: codeOf(error), why: messageOf(error) })
    }
  }
  socket.on('data', onData)
  socket.on('drain', () => socket.resume())
  socket.on('error', (error) => log.debug({ err: error }, 'connection failed'))
  socket.on('end', () => {
    clearTimeout(deadline)
    // whoever has ended its side waits for nothing more: what was asked is answered, long polls end now
    halfClosed = true
    gone.abort()
    if (inFlight === 0) socket.end()
  })
  socket.on('close', () => {
    clearTimeout(deadline)
    gone.abort()
    if (session !== undefined) server.closed?.(session.value)
  })
}
