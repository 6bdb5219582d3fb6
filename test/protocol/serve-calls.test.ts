import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { AppError } from '../../src/core/errors.ts'
import { PAGE_BYTES } from '../../src/protocol/common.ts'
import { type Listener, listenUnix } from '../../src/core/listen.ts'
import { silentLog } from '../../src/core/log.ts'
import { type CallServer, serveCalls } from '../../src/protocol/serve-calls.ts'

const HELLO = { id: 0, method: 'hello', params: {} }
let dir: string
let listener: Listener
let closed: string[]
let pages: number
/** Requests of `hang` wait for this. */
let release: () => void
let closing: AbortController

beforeEach(async () => {
  dir = mkdtempSync('/tmp/mc-')
  const sessions: string[] = []
  closed = sessions
  pages = 0
  const hung = new Promise<void>((resolve) => (release = resolve))
  closing = new AbortController()
  const server: CallServer<string> = {
    frameLimit: 64 * 1024,
    closing: closing.signal,
    firstFrameMs: 300,
    log: silentLog,
    hello: (call) => (call.method === 'hello' ? Promise.resolve({ session: 'one', result: 'hi' }) : Promise.reject(new AppError('unauthenticated', ''))),
    call(_session, { method, params }, signal) {
      if (method === 'now') return params
      if (method === 'page') return String(++pages).padEnd(PAGE_BYTES)
      if (method === 'echo') return Promise.resolve(params)
      if (method === 'hang') return Promise.race([hung, new Promise((resolve) => signal.addEventListener('abort', () => resolve('aborted')))])
      throw method === 'bug' ? new Error('a path of the host: /secret') : new AppError('busy', 'why not', { hint: 'try again' })
    },
    closed: (session) => void sessions.push(session),
  }
  listener = await listenUnix({ onConnection: (socket) => serveCalls(socket, server), maxConnections: 10 }, join(dir, 's'))
})
afterEach(async () => {
  await listener[Symbol.asyncDispose]()
  rmSync(dir, { recursive: true })
})

const frame = (value: unknown): string => `${JSON.stringify(value)}\n`

/** Writes all that, waits for so many replies. */
async function exchange(socket: Socket, text: string, replies: number): Promise<Record<string, unknown>[]> {
  const got: Buffer[] = []
  let left = replies
  const done = new Promise<void>((resolve) => {
    socket.on('data', (chunk: Buffer) => {
      got.push(chunk)
      left -= chunk.filter((byte) => byte === 0x0a).length
      if (left <= 0) resolve()
    })
    socket.on('close', () => resolve())
  })
  if (text === '') socket.resume()
  else socket.write(text)
  await done
  const lines = Buffer.concat(got).toString().split('\n').slice(0, -1)
  return lines.map((line) => JSON.parse(line) as Record<string, unknown>)
}

const open = async (): Promise<Socket> => {
  const socket = connect({ path: listener.path, allowHalfOpen: true })
  await once(socket, 'connect')
  return socket
}

test('greets once, then answers requests that came in the same write, ids echoed', async () => {
  const socket = await open()
  const text = frame(HELLO) + frame({ id: 'a', method: 'echo', params: { x: 1 } }) + frame({ id: 7, method: 'echo' })
  expect(await exchange(socket, text, 3)).toEqual([
    { id: 0, ok: true, result: 'hi' },
    { id: 'a', ok: true, result: { x: 1 } },
    { id: 7, ok: true, result: {} },
  ])
  socket.destroy()
})

test('a refusal carries code, why and hint; a bug of ours only its code', async () => {
  const socket = await open()
  const replies = await exchange(socket, frame(HELLO) + frame({ id: 1, method: 'no' }) + frame({ id: 2, method: 'bug' }), 3)
  expect(replies.slice(1)).toEqual([
    { id: 1, ok: false, error: 'busy', why: 'why not', hint: 'try again' },
    { id: 2, ok: false, error: 'internal' },
  ])
  socket.destroy()
})

test('anything but a good hello first is refused, and the connection ends', async () => {
  const socket = await open()
  const ended = once(socket, 'end')
  expect(await exchange(socket, frame({ id: 3, method: 'echo' }), 1)).toEqual([{ id: 3, ok: false, error: 'unauthenticated' }])
  await ended
  socket.destroy()
})

test('what is no frame ends the connection; the control beside it does not', async () => {
  const socket = await open()
  const ended = once(socket, 'end')
  const good = await exchange(socket, frame(HELLO) + frame({ id: 1, method: 'echo' }), 2)
  expect(good.map((reply) => reply.ok)).toEqual([true, true])
  expect(await exchange(socket, '[]\n', 1)).toMatchObject([{ ok: false, error: 'invalid-request' }])
  await ended
  socket.destroy()
})

test('a silent peer loses its connection at the deadline', async () => {
  const socket = await open()
  socket.resume()
  await once(socket, 'end')
  socket.destroy()
})

test('64 requests may be in flight; one more is refused, and answered ones make room', async () => {
  const socket = await open()
  const hang = Array.from({ length: 64 }, (_, id) => frame({ id, method: 'hang' })).join('')
  const replies = await exchange(socket, `${frame(HELLO)}${hang}${frame({ id: 'more', method: 'echo' })}`, 2)
  expect(replies[1]).toEqual({ id: 'more', ok: false, error: 'too-many-requests' })
  release()
  const later = await exchange(socket, '', 64)
  expect(later).toHaveLength(64)
  expect(await exchange(socket, frame({ id: 'again', method: 'echo' }), 1)).toMatchObject([{ ok: true }])
  socket.destroy()
})

test('what is answered at once counts until it is sent, and is sent before the end', async () => {
  const socket = await open()
  const ended = once(socket, 'end')
  const asked = Array.from({ length: 65 }, (_, id) => frame({ id, method: 'now' })).join('')
  const replies = await exchange(socket, `${frame(HELLO)}${asked}[]\n`, 67)
  expect(replies.slice(1, 65)).toEqual(Array.from({ length: 64 }, (_, id) => ({ id, ok: true, result: {} })))
  expect(replies.slice(65)).toMatchObject([
    { id: 64, error: 'too-many-requests' },
    { id: 0, error: 'invalid-request' },
  ])
  await ended
  socket.destroy()
})

test('a peer that half-closes gets its answers, its long polls end, and the session is closed', async () => {
  const socket = await open()
  await exchange(socket, frame(HELLO), 1)
  const answer = exchange(socket, frame({ id: 1, method: 'hang' }), 1)
  socket.end()
  expect(await answer).toEqual([{ id: 1, ok: true, result: 'aborted' }])
  await once(socket, 'close')
  expect(closed).toEqual(['one'])
})

test('a peer that stops reading stops being read', async () => {
  const socket = await open()
  await exchange(socket, frame(HELLO), 1)
  socket.pause()
  const big = frame({ id: 1, method: 'echo', params: { text: 'x'.repeat(32 * 1024) } })
  let written = 0
  // the kernel's buffers fill, then ours, then the peer's own writes no longer go through
  for (; written < 2000 && socket.write(big); written++) await new Promise(setImmediate)
  expect(written).toBeLessThan(2000)
  socket.destroy()
})

test('a server that closes answers its waits, hears nothing more, and ends every connection, new ones too', async () => {
  const [waiting, idle] = [await open(), await open()]
  const ends = [waiting, idle].map((socket) => once(socket, 'end'))
  await exchange(idle, frame(HELLO), 1)
  const replies = exchange(waiting, frame(HELLO) + frame({ id: 1, method: 'hang' }) + frame({ id: 2, method: 'echo' }), 4)
  await once(waiting, 'data')
  await exchange(waiting, frame({ id: 3, method: 'echo' }), 1) // what came before is taken by now
  closing.abort()
  idle.write(frame({ id: 4, method: 'echo' }))
  expect((await replies).map(({ id, result }) => [id, result])).toContainEqual([1, 'aborted'])
  await Promise.all(ends)
  const late = await open()
  late.resume()
  await once(late, 'end')
  for (const socket of [waiting, idle, late]) socket.destroy()
  await listener.emptied(5000)
  expect(listener.connections()).toBe(0)
})

test('a peer that does not read its replies has one page and what the kernel holds made for it, and gets all once it reads', async () => {
  const [deaf, other] = [await open(), await open()]
  deaf.pause()
  deaf.write(frame(HELLO) + Array.from({ length: 64 }, (_, id) => frame({ id: id + 1, method: 'page' })).join(''))
  await vi.waitFor(() => expect(pages).toBeGreaterThan(0))
  await exchange(other, frame(HELLO) + Array.from({ length: 20 }, (_, id) => frame({ id, method: 'echo' })).join(''), 21)
  expect(pages).toBeLessThanOrEqual(4)
  const replies = await exchange(deaf, '', 65)
  expect(replies.slice(1).map(({ id, result }) => [id, Number(result)])).toEqual(Array.from({ length: 64 }, (_, at) => [at + 1, at + 1]))
  deaf.destroy()
  other.destroy()
})

test('a peer that has ended its side is still answered what was held', async () => {
  const socket = await open()
  socket.end(frame(HELLO) + Array.from({ length: 9 }, (_, id) => frame({ id, method: 'page' })).join(''))
  expect(await exchange(socket, '', 10)).toHaveLength(10)
})
