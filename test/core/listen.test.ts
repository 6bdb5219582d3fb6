import { once } from 'node:events'
import { existsSync, lstatSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { listenUnix } from '../../src/core/listen.ts'

let dir: string
let path: string
beforeEach(() => {
  dir = mkdtempSync('/tmp/ml-')
  path = join(dir, 'a.sock')
})
afterEach(() => rmSync(dir, { recursive: true }))

const deps = { onConnection: () => undefined, maxConnections: 2 }

test('listens on a socket of mode 0600 whatever the umask, and unlinks it', async () => {
  const umask = process.umask(0)
  const listener = await listenUnix(deps, path)
  process.umask(umask)
  expect(lstatSync(path).mode & 0o777).toBe(0o600)
  expect(listener.intact()).toBe(true)
  await listener[Symbol.asyncDispose]()
  expect(existsSync(path)).toBe(false)
})

test('closing drops silent connections at once', async () => {
  const listener = await listenUnix(deps, path)
  const silent = connect(path)
  await once(silent, 'connect')
  const closed = once(silent, 'close')
  await Promise.all([listener[Symbol.asyncDispose](), closed])
})

test('one connection too many is closed, the others stay', async () => {
  const listener = await listenUnix(deps, path)
  const sockets = [connect(path), connect(path)]
  await Promise.all(sockets.map((socket) => once(socket, 'connect')))
  const third = connect(path)
  await once(third, 'close')
  expect(listener.connections()).toBe(2)
  for (const socket of sockets) socket.destroy()
  await listener[Symbol.asyncDispose]()
})

test('a group of peers takes its own places only, and those of no group share theirs', async () => {
  const groups = ['a', 'a', 'a', 'b', null, null, null, 'a']
  const seen: (string | null)[] = []
  let nth = 0
  const of = (): string | null => groups[nth++] ?? null
  const onConnection = (socket: Socket): void => {
    seen.push(groups[nth - 1] ?? null)
    socket.on('end', () => socket.end()).resume()
  }
  const listener = await listenUnix({ maxConnections: 100, onConnection, groups: { of, maxConnections: 2 } }, path)
  const dial = async (): Promise<Socket> => {
    const before = nth
    const socket = connect(path)
    await once(socket, 'connect')
    await vi.waitUntil(() => nth > before)
    return socket
  }
  const [first] = [await dial(), await dial(), await dial(), await dial(), await dial(), await dial(), await dial()]
  expect(seen).toEqual(['a', 'a', 'b', null, null])
  first.destroy()
  await vi.waitUntil(() => listener.connections() === 4)
  await dial()
  expect(seen.at(-1)).toBe('a')
  await listener[Symbol.asyncDispose]()
})

test('a stale socket is replaced; one that answers is another host', async () => {
  const other = createServer().listen(path)
  await once(other, 'listening')
  await expect(listenUnix(deps, path)).rejects.toMatchObject({ code: 'host-running' })
  other.close()
  await once(other, 'close')
  const first = await listenUnix(deps, path)
  await first[Symbol.asyncDispose]()
})

test('what is there and is no socket is named and left alone', async () => {
  writeFileSync(path, 'mine')
  await expect(listenUnix(deps, path)).rejects.toMatchObject({ code: 'data-root-unsafe', message: expect.stringContaining(path) as unknown })
  expect(lstatSync(path).isFile()).toBe(true)
})

test('a path that the kernel would cut is refused before anything is made', async () => {
  const long = join(dir, 'x'.repeat(107 - dir.length - 1))
  const fits = await listenUnix(deps, long)
  await fits[Symbol.asyncDispose]()
  await expect(listenUnix(deps, `${long}x`)).rejects.toMatchObject({ code: 'socket-path-too-long' })
})

test('a socket that was swapped is not intact', async () => {
  const listener = await listenUnix(deps, path)
  rmSync(path)
  const other = createServer().listen(path)
  await once(other, 'listening')
  expect(listener.intact()).toBe(false)
  other.close()
  await listener[Symbol.asyncDispose]()
})
