import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { type Listener, listenUnix } from '../../src/core/listen.ts'
import { silentLog } from '../../src/core/log.ts'
import { type Capabilities, createCapabilities } from '../../src/launch/capabilities.ts'
import { serveLaunch } from '../../src/launch/server.ts'
import type { LaunchRequest } from '../../src/protocol/launch.ts'

const LIMIT_BYTES = 4096
const FIRST_FRAME_MS = 300
const INVALID = '{"ok":false,"error":"invalid-request"}\n'
const UNKNOWN = '{"ok":false,"error":"unauthenticated"}\n'
const GOOD = '{"ok":true,"run":"r0123456789ab","instance":"coder","harness":"script","model":"m","env":"created"}\n'

let dir: string
let listener: Listener
let capabilities: Capabilities
let cap: string
let launched: LaunchRequest[]
let refused: string[]
/** A launch waits for this. */
let gate: Promise<unknown>

beforeEach(async () => {
  dir = mkdtempSync('/tmp/ms-')
  capabilities = createCapabilities()
  cap = capabilities.issue({ kind: 'session', business: 'acme', role: 'pm', instance: 'pm', run: 'r00000000000a', grants: new Set(['role.launch']) })
  launched = []
  refused = []
  gate = Promise.resolve()
  const serve = (socket: Socket): void =>
    serveLaunch(
      {
        log: silentLog,
        firstFrameMs: FIRST_FRAME_MS,
        authenticate: (text) => capabilities.find(text),
        refusedUnknown: (code) => void refused.push(code),
        async launch(_asker, request) {
          launched.push(request)
          await gate
          return { ok: true, run: 'r0123456789ab', instance: request.instance, harness: 'script', model: 'm', env: 'created' }
        },
      },
      socket,
    )
  listener = await listenUnix({ onConnection: serve, maxConnections: 500 }, join(dir, 'launch.sock'))
})
afterEach(async () => {
  await listener[Symbol.asyncDispose]()
  rmSync(dir, { recursive: true })
})

async function dial(): Promise<Socket> {
  const socket = connect({ path: listener.path, allowHalfOpen: true })
  socket.on('error', () => undefined)
  await once(socket, 'connect')
  return socket
}

/** Everything that the host says until it ends its side. */
async function allOf(socket: Socket): Promise<string> {
  const said: Buffer[] = []
  socket.on('data', (chunk: Buffer) => void said.push(chunk))
  // not `once`, which rejects for a connection that is reset
  await new Promise<void>((resolve) => socket.on('end', resolve).on('close', () => resolve()))
  socket.destroy()
  return Buffer.concat(said).toString()
}

async function say(...pieces: readonly (string | Buffer)[]): Promise<string> {
  const socket = await dial()
  const answer = allOf(socket)
  for (const piece of pieces) {
    socket.write(piece)
    await turn()
  }
  return answer
}

const request = (more: object = {}): string => `${JSON.stringify({ cap, instance: 'coder', ...more })}\n`
/** A good request of exactly so many bytes. */
const padded = (bytes: number): string => request().replace('{', `{${' '.repeat(bytes - request().length)}`)

describe('one frame', () => {
  test('that is good gets its launch', async () => {
    expect(await say(request())).toBe(GOOD)
    expect(launched).toEqual([{ cap, instance: 'coder' }])
  })

  test.each<[string, string | Buffer]>([
    ['is not JSON', 'launch coder\n'],
    ['is empty', '\n'],
    ['is null', 'null\n'],
    ['is a list', '[]\n'],
    ['is a string', '"coder"\n'],
    ['is invalid UTF-8', Buffer.concat([Buffer.from('{"cap":"'), Buffer.from([0xc3, 0x28]), Buffer.from('","instance":"coder"}\n')])],
    ['ends within a character', Buffer.from([0xc3, 0x0a])],
    ['nests deeper than 32', `${'['.repeat(33)}${']'.repeat(33)}\n`],
    ['has no instance', '{"cap":"x"}\n'],
    ['has a cap that is no string', '{"cap":7,"instance":"coder"}\n'],
  ])('that %s is refused, with nothing else said', async (_what, frame) => {
    expect(await say(frame)).toBe(INVALID)
    expect([launched, refused]).toEqual([[], ['invalid-request']])
  })

  test.each<[string, () => string]>([
    ['NUL', () => request().replace('coder', 'co\0der')],
    ['a byte order mark', () => `\ufeff${request()}`],
    ['an instance that is no string', () => request({ instance: 7 })],
    ['an unknown key', () => request({ from: 'ada' })],
    ['__proto__ as a key', () => request().replace('"instance"', '"__proto__":{"instance":"coder"},"instance"')],
    ['constructor as a key', () => request({ constructor: 1 })],
    ['mode fresh, which is the founder’s', () => request({ mode: 'fresh' })],
    ['a run without continue', () => request({ run: 'r0' })],
  ])('with a good capability and %s is refused', async (_what, frame) => {
    expect(await say(frame())).toBe(INVALID)
    expect(launched).toEqual([])
  })

  test('with __proto__ as the instance asks for an instance of that very name, which the gate has never heard of', async () => {
    expect(await say(request({ instance: '__proto__' }))).toBe(GOOD.replace('coder', '__proto__'))
    expect(launched).toEqual([{ cap, instance: '__proto__' }])
  })

  test('may have 4096 bytes; one of 4097 is refused at once, before its line ends', async () => {
    expect([padded(LIMIT_BYTES).length, await say(padded(LIMIT_BYTES))]).toEqual([LIMIT_BYTES, GOOD])
    expect(await say(padded(LIMIT_BYTES + 1))).toBe(INVALID)
    expect(await say('x'.repeat(LIMIT_BYTES))).toBe(INVALID)
    expect(launched).toHaveLength(1)
  })

  test('may come in pieces, also within a character', async () => {
    const frame = Buffer.from(request({ request: 'grüße' }))
    const at = frame.indexOf(0xc3) + 1
    expect(await say(frame.subarray(0, at), frame.subarray(at))).toBe(GOOD)
    expect(await say(...[...frame].map((byte) => Buffer.from([byte])))).toBe(GOOD)
    expect(launched.map((asked) => asked.request)).toEqual(['grüße', 'grüße'])
  })

  test('gets one answer, whatever comes after it', async () => {
    expect(await say(request() + request({ instance: 'other' }))).toBe(GOOD)
    expect(await say(request(), request({ instance: 'other' }))).toBe(GOOD)
    expect(launched.map(({ instance }) => instance)).toEqual(['coder', 'coder'])
  })
})

describe('a capability', () => {
  /** None of them is a live one; the first is as unknown as can be. */
  const strangers = (): Record<string, string> => {
    const ended = capabilities.issue({ kind: 'session', business: 'acme', role: 'pm', instance: 'pm', run: 'r00000000000b', grants: new Set() })
    capabilities.revoke('r00000000000b')
    const upper = cap.toUpperCase()
    return {
      'of another': 'ab'.repeat(32),
      'of 63 digits': cap.slice(1),
      'of 65 digits': `${cap}0`,
      'in upper case': upper === cap ? 'AB'.repeat(32) : upper,
      'of zeros': '0'.repeat(64),
      'of an ended run': ended,
      short: 'short',
      empty: '',
    }
  }

  test('that is not live is unauthenticated, all in the same words', async () => {
    for (const [name, text] of Object.entries(strangers())) expect([name, await say(request({ cap: text }))]).toEqual([name, UNKNOWN])
    expect(launched).toEqual([])
    expect(await say(request())).toBe(GOOD)
  })

  test('that is not live takes the same time, whatever is wrong with it', async () => {
    const times = new Map(Object.keys(strangers()).map((name) => [name, [] as number[]]))
    const all = Object.entries(strangers())
    for (let round = 0; round < 80; round++) {
      for (const [name, text] of all) {
        const socket = await dial()
        const answer = allOf(socket)
        const start = performance.now()
        socket.write(request({ cap: text }))
        await answer
        times.get(name)?.push(performance.now() - start)
      }
    }
    const medians = [...times.values()].map((list) => list.sort((a, b) => a - b)[list.length >> 1] ?? 0)
    expect(Math.max(...medians) / Math.min(...medians)).toBeLessThan(2)
  })
})

describe('a peer', () => {
  test('that sends a byte now and then is closed at the deadline, which runs from accept', async () => {
    const start = performance.now()
    const socket = await dial()
    const answer = allOf(socket)
    const drip = setInterval(() => socket.write(' '), FIRST_FRAME_MS / 10)
    expect(await answer).toBe('')
    clearInterval(drip)
    const tookMs = performance.now() - start
    expect([tookMs > FIRST_FRAME_MS * 0.9, tookMs < FIRST_FRAME_MS * 5]).toEqual([true, true])
    await vi.waitUntil(() => listener.connections() === 0)
  })

  test('that ends its side after its request still gets the answer; one that asked nothing gets nothing', async () => {
    const socket = await dial()
    const answer = allOf(socket)
    socket.end(request())
    expect(await answer).toBe(GOOD)
    const silent = await dial()
    const nothing = allOf(silent)
    silent.end('{"cap"')
    expect(await nothing).toBe('')
    await vi.waitUntil(() => listener.connections() === 0)
  })

  test('that is gone before the reply costs nothing but its connection', async () => {
    let open: (value?: unknown) => void = () => undefined
    gate = new Promise((resolve) => (open = resolve))
    const socket = await dial()
    socket.write(request())
    await vi.waitUntil(() => launched.length === 1)
    socket.destroy()
    open()
    await vi.waitUntil(() => listener.connections() === 0)
    expect(await say(request())).toBe(GOOD)
  })

  test('that does not close once it has its reply is dropped', async () => {
    const socket = await dial()
    socket.write(request())
    socket.resume()
    await once(socket, 'end')
    expect([socket.writable, listener.connections()]).toEqual([true, 1])
    await vi.waitUntil(() => listener.connections() === 0, { timeout: 5000 })
    socket.destroy()
  })

  test('that is good is answered at once beside 200 idle ones', async () => {
    const idle = await Promise.all(Array.from({ length: 200 }, dial))
    const start = performance.now()
    expect(await say(request())).toBe(GOOD)
    expect(performance.now() - start).toBeLessThan(FIRST_FRAME_MS)
    for (const socket of idle) socket.destroy()
  })
})
