import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { AppError } from '../../src/core/errors.ts'
import { listenUnix } from '../../src/core/listen.ts'
import { silentLog } from '../../src/core/log.ts'
import { createFetchPlaces } from '../../src/git/fetch-places.ts'
import { GIT_TIMES, type GitPorts, type GitServerDeps } from '../../src/git/exchange.ts'
import { serveGit } from '../../src/git/server.ts'
import type { SessionPrincipal } from '../../src/protocol/common.ts'
import { type GitWorld, makeGitWorld } from './world.ts'

const CAP = 'c'.repeat(64)
const PRINCIPAL: SessionPrincipal = {
  kind: 'session',
  business: 'acme',
  role: 'coder',
  instance: 'coder',
  run: 'r000000000001',
  grants: new Set(['git.push.working']),
}
const header = (more: Record<string, unknown> = {}): Record<string, unknown> => ({
  cap: CAP,
  op: 'push',
  project: 'stack',
  task: 't-1',
  commit: '0'.repeat(40),
  size: 10,
  ...more,
})

let w: GitWorld
let listener: Awaited<ReturnType<typeof listenUnix>>
let served: Promise<void>[]
const closed = new Set<string>()

const ports: GitPorts = {
  authenticate: (cap) => (cap === CAP ? PRINCIPAL : null),
  beginPush(_principal, { task }) {
    if (closed.has(task)) throw new AppError('task-closed', `${task} is closed`)
    return undefined
  },
  finishPush: (_principal, { task }) => (closed.has(task) ? Promise.reject(new AppError('task-closed', `${task} is closed`)) : Promise.resolve('p1')),
  fetchable: () => Promise.resolve(['t-1']),
  syncMain: () => Promise.resolve(),
}

async function listen(more: Partial<GitServerDeps> = {}): Promise<void> {
  const deps: GitServerDeps = {
    ...w.intake,
    limits: () => ({ ...w.intake.limits(), pushBytes: 1024 * 1024 }),
    ports,
    freeBytes: () => Promise.resolve(2 ** 40),
    fetches: createFetchPlaces(),
    log: silentLog,
    ...more,
  }
  listener = await listenUnix({ maxConnections: 64, onConnection: (socket) => served.push(serveGit(deps, socket)) }, w.path('git.sock'))
}

beforeEach(async () => {
  w = await makeGitWorld()
  served = []
  closed.clear()
})
afterEach(async () => {
  await listener[Symbol.asyncDispose]()
  await Promise.all(served)
  expect(readdirSync(w.gitRoot).includes('.incoming') ? readdirSync(join(w.gitRoot, '.incoming')) : []).toEqual([])
  w.close()
})

interface Answer {
  readonly reply: Record<string, unknown> | null
  readonly rest: Buffer
}

async function dial(): Promise<Socket> {
  const socket = connect({ path: w.path('git.sock'), allowHalfOpen: true })
  socket.on('error', () => undefined)
  await once(socket, 'connect')
  return socket
}

async function answerOf(socket: Socket): Promise<Answer> {
  const chunks: Buffer[] = []
  socket.on('data', (chunk: Buffer) => chunks.push(chunk))
  await Promise.race([once(socket, 'end'), once(socket, 'close')]).catch(() => undefined)
  socket.destroy()
  const bytes = Buffer.concat(chunks)
  const end = bytes.indexOf('\n')
  return end === -1
    ? { reply: null, rest: bytes }
    : { reply: JSON.parse(bytes.toString('utf8', 0, end)) as Record<string, unknown>, rest: bytes.subarray(end + 1) }
}

async function ask(...parts: (Buffer | string)[]): Promise<Answer> {
  const socket = await dial()
  for (const part of parts) socket.write(part)
  return answerOf(socket)
}

const line = (value: unknown): string => `${JSON.stringify(value)}\n`
const work = (): { commit: string; bytes: Buffer } => {
  const commit = w.forge.commit(w.forge.git('rev-parse', `${w.base}^{tree}`), w.base)
  return { commit, bytes: w.forge.honest(commit, w.base) }
}

test('a push is taken and answered; its bytes may come with the header or in pieces', async () => {
  await listen()
  const { commit, bytes } = work()
  const head = line(header({ commit, size: bytes.length }))
  const ok = { ok: true, push: 'p1', ref: 'refs/heads/work/t-1', commit }
  expect((await ask(Buffer.concat([Buffer.from(head), bytes]))).reply).toEqual(ok)
  expect((await ask(head.slice(0, 20), head.slice(20), bytes.subarray(0, 7), bytes.subarray(7), 'more than was announced')).reply).toEqual(ok)
  expect(w.git(w.repository, 'rev-parse', 'refs/heads/work/t-1')).toBe(commit)
})

test('a header of a wrong shape, or past 4 KiB, is invalid-request at once; an unknown capability is unauthenticated', async () => {
  await listen()
  const bad = [
    header({ op: 'other' }),
    header({ size: -1 }),
    header({ size: '10' }),
    header({ extra: 1 }),
    header({ commit: '--upload-pack=x' }),
    [],
    null,
    7,
    header({ __proto__: { a: 1 }, cap: 7 }),
  ]
  for (const value of bad) expect((await ask(line(value))).reply).toMatchObject({ ok: false, error: 'invalid-request' })
  for (const bytes of ['not json\n', '\n', Buffer.from([0xff, 0x0a]), 'x'.repeat(5000)])
    expect((await ask(bytes)).reply).toMatchObject({ ok: false, error: 'invalid-request' })
  for (const cap of ['short', '0'.repeat(64), 'A'.repeat(64)]) expect((await ask(line(header({ cap })))).reply).toEqual({ ok: false, error: 'unauthenticated' })
  const socket = await dial()
  socket.end()
  expect((await answerOf(socket)).reply).toBeNull()
})

test('too big by its header, too short, closed before and closed in between', async () => {
  await listen()
  expect((await ask(line(header({ size: 1024 * 1024 + 1 })))).reply).toMatchObject({ error: 'bundle-too-big' })
  const short = await dial()
  short.end(line(header({ size: 100 })) + 'abc')
  expect((await answerOf(short)).reply).toMatchObject({ error: 'bundle-invalid', why: 'the bundle ended 97 bytes early' })
  const { commit, bytes } = work()
  const late = await dial()
  late.write(line(header({ commit, size: bytes.length })))
  late.write(bytes.subarray(0, 20))
  closed.add('t-1')
  late.write(bytes.subarray(20))
  expect((await answerOf(late)).reply).toMatchObject({ error: 'task-closed' })
  expect((await ask(line(header({ commit, size: bytes.length })), bytes)).reply).toMatchObject({ error: 'task-closed' })
  expect(w.git(w.repository, 'for-each-ref', 'refs/heads/work')).toBe('')
  expect((await ask(line(header({ commit, size: bytes.length, task: 't-2' })), bytes)).reply).toMatchObject({ ok: true }) // the control
})

test('what a refused push still sends is thrown away: the peer gets rid of it, reads its answer, and leaves its place', async () => {
  await listen()
  const socket = connect({ path: w.path('git.sock'), allowHalfOpen: true })
  socket.end(Buffer.concat([Buffer.from(line(header({ size: 8 * 1024 * 1024 }))), Buffer.alloc(8 * 1024 * 1024)]))
  await once(socket, 'finish')
  const closed = once(socket, 'close')
  expect((await answerOf(socket)).reply).toMatchObject({ error: 'bundle-too-big' })
  await closed
})

test('a fault of ours is internal, without its words', async () => {
  await listen({ runHelper: () => Promise.reject(new Error(`boom in ${w.root}`)) })
  const { commit, bytes } = work()
  expect((await ask(line(header({ commit, size: bytes.length })), bytes)).reply).toEqual({ ok: false, error: 'internal' })
})

test('a fetch answers with tips and exactly the bundle', async () => {
  await listen()
  const { commit, bytes } = work()
  await ask(line(header({ commit, size: bytes.length })), bytes)
  const { reply, rest } = await ask(line({ cap: CAP, op: 'fetch', project: 'stack', have: [w.base] }))
  expect(reply).toEqual({ ok: true, size: rest.length, tips: { 'refs/heads/main': w.base, 'refs/heads/t-1': commit } })
  expect(rest.toString('latin1', 0, 15)).toBe('# v2 git bundle')
  const none = await ask(line({ cap: CAP, op: 'fetch', project: 'stack', have: [commit] }))
  expect([none.reply?.size, none.rest.length]).toEqual([0, 0])
})

test('silence, dribbling and dawdling are dropped at their deadlines, which no byte moves', async () => {
  const times = { ...GIT_TIMES, firstFrameMs: 200, totalMs: 900, windowMs: 300, windowBytes: 1000 }
  await listen({ times })
  const timed = async (act: (socket: Socket) => void): Promise<number> => {
    const started = performance.now()
    const socket = await dial()
    act(socket)
    await answerOf(socket)
    return performance.now() - started
  }
  const dribble = (socket: Socket, text: string, first = text): void => {
    socket.write(first)
    const timer = setInterval(() => socket.write(text), 20)
    socket.on('close', () => clearInterval(timer))
  }
  const open = line(header({ size: 900_000 }))
  const [silent, byteByByte, slow, endless] = await Promise.all([
    timed(() => undefined),
    timed((socket) => dribble(socket, 'x')),
    timed((socket) => dribble(socket, 'x', open)),
    timed((socket) => dribble(socket, 'x'.repeat(500), open)),
  ])
  for (const ms of [silent, byteByByte]) expect(Math.abs(ms - 200)).toBeLessThan(150)
  expect(Math.abs(slow - 300)).toBeLessThan(200)
  expect(Math.abs(endless - 900)).toBeLessThan(200)
})

describe('a bundle that nobody takes', () => {
  const fetch = line({ cap: CAP, op: 'fetch', project: 'stack', have: [] })
  /** Pushes more than a socket holds. */
  async function fill(): Promise<void> {
    const commit = w.forge.commit(w.forge.tree([{ mode: '100644', name: 'large', oid: w.forge.object('blob', randomBytes(900_000)) }]), w.base)
    const bytes = w.forge.honest(commit, w.base)
    expect((await ask(line(header({ commit, size: bytes.length })), bytes)).reply).toMatchObject({ ok: true })
  }
  /** Reads the reply, and nothing more. */
  async function stall(): Promise<Socket> {
    const socket = await dial()
    socket.write(fetch)
    await once(socket, 'readable')
    return socket
  }

  test('is dropped after a window; one that is taken is not', async () => {
    await listen({ times: { ...GIT_TIMES, windowMs: 300 } })
    await fill()
    const stalled = await stall()
    const { reply, rest } = await ask(fetch)
    expect([reply?.ok, rest.length]).toEqual([true, reply?.size])
    await Promise.all(served)
    expect(readdirSync(join(w.gitRoot, '.incoming'))).toEqual([])
    stalled.destroy()
  })

  test('is one of two of its run', async () => {
    await listen()
    await fill()
    const stalled = [await stall(), await stall()]
    expect((await ask(fetch)).reply).toEqual({ ok: false, error: 'busy', why: '2 fetches of this run are being served' })
    const [first] = stalled
    first?.destroy()
    await expect.poll(async () => (await ask(fetch)).reply?.ok).toBe(true)
    for (const socket of stalled) socket.destroy()
  })

  test('is not made where it would eat the reserve', async () => {
    let freeBytes = 2 ** 40
    await listen({ freeBytes: () => Promise.resolve(freeBytes) })
    freeBytes = 2 ** 29 - 1
    expect((await ask(fetch)).reply).toMatchObject({ error: 'disk-full', why: expect.stringContaining('and this fetch needs 512 MiB') as string })
    freeBytes = 2 ** 29
    expect((await ask(fetch)).reply).toMatchObject({ ok: true })
  })
})
