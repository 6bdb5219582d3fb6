import { once } from 'node:events'
import { type FileHandle, mkdtemp, open, rm } from 'node:fs/promises'
import { createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { exchange, type GitDoor } from '../../src/runner/git/exchange.ts'

const MIB = 1024 * 1024
/** More than a socket and the streams around it hold. */
const HELD_BYTES = 4 * MIB
const UPLOAD_BYTES = 64 * MIB

let dir: string
let host: Server | undefined
let file: FileHandle | undefined
let ended: AbortController

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'mgr-'))
  ended = new AbortController()
})
afterEach(async () => {
  ended.abort()
  await file?.close()
  host?.close()
  ;[file, host] = [undefined, undefined]
  await rm(dir, { recursive: true, force: true })
})

/** A git socket that does with a connection what the test says; null: nobody listens. */
async function doorTo(onConnection: ((socket: Socket) => void) | null): Promise<GitDoor> {
  const path = join(dir, 'git.sock')
  if (onConnection !== null) {
    host = createServer({ allowHalfOpen: true }, onConnection).listen(path)
    await once(host, 'listening')
  }
  return { path, toRequest: (header) => ({ ...header, cap: 'secret' }), signal: ended.signal }
}

async function fileOf(bytes: number): Promise<FileHandle> {
  file = await open(join(dir, 'upload'), 'wx+')
  await file.writeFile(Buffer.alloc(bytes, 'x'))
  return file
}

describe('an exchange with the git socket', () => {
  test('adds the capability, whatever the header says of one, and carries bytes both ways', async () => {
    let seen = ''
    const door = await doorTo((socket) => {
      socket.on('data', (chunk) => {
        seen += chunk.toString()
        if (seen.length >= 3 * MIB) socket.end(`{"ok":true,"size":5}\nhello`)
      })
    })
    const { reply, body } = await exchange(door, { op: 'push', cap: 'forged' }, await fileOf(3 * MIB))
    expect(reply).toEqual({ ok: true, size: 5 })
    expect(await text(body)).toBe('hello')
    const [line, bytes] = seen.split('\n')
    expect(JSON.parse(line ?? '')).toEqual({ op: 'push', cap: 'secret' })
    expect(bytes).toBe('x'.repeat(3 * MIB))
  })

  test('an early refusal arrives although bytes are still to come', async () => {
    const door = await doorTo((socket) => {
      socket.once('data', () => {
        // as the host does: it ends its side and throws away what still comes, so that the reply arrives
        socket.end('{"ok":false,"error":"task-closed","why":"the task t-1 is closed"}\n')
        socket.on('error', () => undefined).resume()
      })
    })
    await expect(exchange(door, { op: 'push' }, await fileOf(UPLOAD_BYTES))).rejects.toMatchObject({ code: 'task-closed', message: 'the task t-1 is closed' })
  })

  test('nothing is piled up for a host that does not read', async () => {
    const door = await doorTo((socket) => socket.pause())
    const upload = await fileOf(UPLOAD_BYTES)
    const before = process.memoryUsage.rss()
    const pending = exchange(door, { op: 'push' }, upload)
    pending.catch(() => undefined)
    const [socket] = (await once(host ?? createServer(), 'connection')) as [Socket]
    await once(socket, 'readable')
    for (let turn = 0; turn < 2000; turn++) await new Promise(setImmediate)
    expect(socket.readableLength + socket.bytesRead).toBeLessThan(HELD_BYTES)
    expect(process.memoryUsage.rss() - before).toBeLessThan(UPLOAD_BYTES / 2)
    socket.destroy()
    await expect(pending).rejects.toMatchObject({ code: 'host-not-running' })
  })

  test('without a git socket it is not-permitted; without a host it says so', async () => {
    await expect(exchange(null, { op: 'fetch' })).rejects.toMatchObject({ code: 'not-permitted' })
    await expect(exchange(await doorTo(null), { op: 'fetch' })).rejects.toMatchObject({ code: 'host-not-running' })
  })

  test('a git that is gone takes its connection to the host with it', async () => {
    const door = await doorTo(() => undefined)
    const pending = exchange(door, { op: 'push' })
    pending.catch(() => undefined)
    const [socket] = (await once(host ?? createServer(), 'connection')) as [Socket]
    ended.abort()
    await once(socket.resume(), 'end')
    socket.destroy()
    await expect(pending).rejects.toMatchObject({ code: 'host-not-running' })
  })
})
