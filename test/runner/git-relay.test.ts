import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { askTool, exchange, type GitDoor } from '../../src/runner/git/exchange.ts'
import { relayGit } from '../../src/runner/git/relay.ts'
import { openToolServer } from '../../src/runner/tool-server.ts'

const MIB = 1024 * 1024
/** More than two sockets and the streams around them hold. */
const HELD_BYTES = 4 * MIB
const UPLOAD_BYTES = 64 * MIB

let dir: string
let host: Server | undefined
let tools: AsyncDisposable | undefined

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'mgr-'))
})
afterEach(async () => {
  await tools?.[Symbol.asyncDispose]()
  host?.close()
  ;[tools, host] = [undefined, undefined]
  await rm(dir, { recursive: true, force: true })
})

/** A git socket that does with a connection what the test says; the sandbox's side of the relay to it. */
async function relayTo(onConnection: ((socket: Socket) => void) | null, door = true): Promise<GitDoor> {
  const [hostPath, path] = [join(dir, 'git.sock'), join(dir, 'tools.sock')]
  if (onConnection !== null) {
    host = createServer({ allowHalfOpen: true }, onConnection).listen(hostPath)
    await once(host, 'listening')
  }
  const withCapability = { path: hostPath, toRequest: (header: object) => ({ ...header, cap: 'secret' }) }
  tools = await openToolServer(
    {
      callTool: () => Promise.resolve({ ok: true, result: 'called' }),
      listTools: () => Promise.resolve([]),
      relayGit: (client, header, rest) => relayGit(door ? withCapability : null, client, header, rest),
      log: () => undefined,
    },
    path,
  )
  return { path, toRequest: (header) => ({ git: header }) }
}

async function fileOf(bytes: number): Promise<string> {
  const path = join(dir, 'upload')
  await writeFile(path, Buffer.alloc(bytes, 'x'))
  return path
}

describe('the git exchange of the tool socket', () => {
  test('adds the capability, whatever the header says of one, and carries bytes both ways', async () => {
    let seen = ''
    const door = await relayTo((socket) => {
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
    const door = await relayTo((socket) => {
      socket.once('data', () => {
        // as the host does: it ends its side and throws away what still comes, so that the reply arrives
        socket.end('{"ok":false,"error":"task-closed","why":"the task t-1 is closed"}\n')
        socket.on('error', () => undefined).resume()
      })
    })
    await expect(exchange(door, { op: 'push' }, await fileOf(UPLOAD_BYTES))).rejects.toMatchObject({ code: 'task-closed', message: 'the task t-1 is closed' })
  })

  test('nothing is piled up for a host that does not read', async () => {
    const door = await relayTo((socket) => socket.pause())
    const file = await fileOf(UPLOAD_BYTES)
    const before = process.memoryUsage.rss()
    const pending = exchange(door, { op: 'push' }, file)
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
    const door = await relayTo(null, false)
    await expect(exchange(door, { op: 'fetch' })).rejects.toMatchObject({ code: 'not-permitted' })
    await tools?.[Symbol.asyncDispose]()
    await expect(exchange(await relayTo(null), { op: 'fetch' })).rejects.toMatchObject({ code: 'host-not-running' })
  })

  test('a client that is gone takes its connection to the host with it', async () => {
    const door = await relayTo(() => undefined)
    const pending = exchange(door, { op: 'push' })
    pending.catch(() => undefined)
    const [socket] = (await once(host ?? createServer(), 'connection')) as [Socket]
    await tools?.[Symbol.asyncDispose]()
    await once(socket.resume(), 'end')
    socket.destroy()
    await expect(pending).rejects.toMatchObject({ code: 'host-not-running' })
  })

  test('tools are answered on the same socket, as before', async () => {
    const door = await relayTo(null)
    expect(await askTool(door.path, { tool: 'owed' })).toEqual({ ok: true, result: 'called' })
  })
})
