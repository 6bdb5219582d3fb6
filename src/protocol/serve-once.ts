import type { Socket } from 'node:net'
import type { Log } from '../core/log.ts'
import { createLineDecoder, toFrame } from './frame.ts'

/** How long a peer may keep its side open once it has its reply. */
const LINGER_MS = 1000

export interface OnceServer {
  readonly frameLimit: number
  /** From accept to the first whole frame. */
  readonly firstFrameMs: number
  readonly log: Log
  /** Answers the one line; `error` instead when it can become no frame. Never rejects. */
  answer(line: Buffer | null): Promise<unknown>
}

/** Serves a socket of one request and one reply: the host then ends its side, and drops a peer that does not close. */
export function serveOnce(socket: Socket, server: OnceServer): void {
  const decoder = createLineDecoder(server.frameLimit)
  const deadline = setTimeout(() => socket.destroySoon(), server.firstFrameMs)
  const finish = async (line: Buffer | null): Promise<void> => {
    clearTimeout(deadline)
    socket.removeListener('data', onData)
    socket.resume() // what else comes is dropped
    const reply = await server.answer(line)
    if (socket.destroyed) return
    socket.end(toFrame(reply))
    setTimeout(() => socket.destroy(), LINGER_MS).unref()
  }
  function onData(chunk: Buffer): void {
    let found: ReturnType<typeof decoder.pushOne>
    try {
      found = decoder.pushOne(chunk)
    } catch {
      return void finish(null)
    }
    if (found !== undefined) void finish(found.line)
  }
  socket.on('data', onData)
  socket.on('end', () => {
    clearTimeout(deadline)
    // a half-closed peer still gets the answer to what it asked; one that asked nothing gets nothing
    if (socket.listenerCount('data') > 0) socket.end()
  })
  socket.on('error', (error) => server.log.debug({ err: error }, 'connection failed'))
  socket.on('close', () => clearTimeout(deadline))
}
