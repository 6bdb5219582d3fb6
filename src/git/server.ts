import type { Socket } from 'node:net'
import { AppError } from '../core/errors.ts'
import type { Log } from '../core/log.ts'
import type { SessionPrincipal } from '../protocol/common.ts'
import { FRAME_LIMIT, parseFrame, toFrame } from '../protocol/frame.ts'
import { type GitHeader, gitHeaderSchema, type GitRefusal } from '../protocol/git.ts'
import { createByteReader } from './byte-reader.ts'
import { orDiskFull } from './disk-full.ts'
import { type Exchange, GIT_TIMES, type GitServerDeps } from './exchange.ts'
import { serveFetch, serveList } from './serve-fetch.ts'
import { servePush } from './serve-push.ts'

function toRefusal(thrown: unknown, log: Log): GitRefusal {
  const error = orDiskFull(thrown, 'the request cannot be served')
  if (error instanceof AppError) return { ok: false, error: error.code, ...(error.message === '' ? {} : { why: error.message }) }
  log.error({ err: error }, 'git request failed')
  return { ok: false, error: 'internal' }
}

function parseHeader(line: Buffer): GitHeader {
  const parsed = gitHeaderSchema.safeParse(parseFrame(line))
  if (!parsed.success) throw new AppError('invalid-request', 'a header is one of push, fetch or list with their fields')
  return parsed.data
}

function serveHeader(deps: GitServerDeps, principal: SessionPrincipal, header: GitHeader, exchange: Exchange): Promise<void> {
  switch (header.op) {
    case 'push':
      return servePush(deps, principal, header, exchange)
    case 'fetch':
      return serveFetch(deps, principal, header, exchange)
    case 'list':
      return serveList(deps, principal, header, exchange)
  }
}

async function answer(deps: GitServerDeps, exchange: Exchange, firstFrame: NodeJS.Timeout): Promise<void> {
  const line = await exchange.reader.readLine(FRAME_LIMIT.git)
  clearTimeout(firstFrame)
  if (line === null) return
  const header = parseHeader(line)
  const principal = deps.ports.authenticate(header.cap, exchange.socket)
  if (principal === null) throw new AppError('unauthenticated', '')
  await serveHeader(deps, principal, header, exchange)
}

/** Ends our side; a peer that does not end its own is dropped soon. */
async function finish({ socket, reader, times }: Exchange): Promise<void> {
  if (socket.destroyed) return
  socket.end()
  const timer = setTimeout(() => socket.destroy(), times.lingerMs)
  socket.on('close', () => clearTimeout(timer))
  await reader.discard()
}

/**
 * Serves one accepted connection of git.sock: one header, for a push exactly its bytes, one reply. Resolves when it is
 * answered; never rejects. All deadlines run from now.
 */
export async function serveGit(deps: GitServerDeps, socket: Socket): Promise<void> {
  const { times = GIT_TIMES, log } = deps
  const gone = new AbortController()
  const drop = (): void => void socket.destroy()
  const [firstFrame, total] = [setTimeout(drop, times.firstFrameMs), setTimeout(drop, times.totalMs)]
  socket.on('error', (error) => log.debug({ err: error }, 'git connection failed'))
  socket.on('close', () => gone.abort(new AppError('interrupted', 'the peer is gone')))
  const exchange: Exchange = { socket, reader: createByteReader(socket), signal: gone.signal, times }
  try {
    await answer(deps, exchange, firstFrame)
  } catch (error) {
    if (!socket.destroyed) socket.write(toFrame(toRefusal(error, log)))
    else log.debug({ err: error }, 'git request cut off')
  } finally {
    clearTimeout(firstFrame)
    clearTimeout(total)
    await finish(exchange)
  }
}
