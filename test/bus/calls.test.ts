import { once } from 'node:events'
import * as fs from 'node:fs'
import * as net from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import { createBusCalls } from '../../src/bus/calls.ts'
import type { BusPorts } from '../../src/bus/ports.ts'
import { systemClock } from '../../src/core/clock.ts'
import { silentLog } from '../../src/core/log.ts'
import { AppError } from '../../src/core/errors.ts'
import type { SessionPrincipal } from '../../src/protocol/common.ts'
import { serveCalls } from '../../src/protocol/serve-calls.ts'
import { type Company, company, FOUNDER } from './company.ts'

const undo: (() => void)[] = []
afterEach(() => {
  for (const step of undo.splice(0).reverse()) step()
})

interface Line {
  readonly id: string | number
  readonly ok: boolean
  readonly error?: string
  readonly why?: string
  readonly result?: unknown
}

interface Client {
  readonly socket: net.Socket
  send(frame: object): void
  next(): Promise<Line | null>
  call(method: string, params?: object): Promise<Line | null>
}

function client(path: string): Client {
  const socket = net.connect(path)
  undo.push(() => socket.destroy())
  const lines: string[] = []
  const waiting: ((line: Line | null) => void)[] = []
  let rest = ''
  let ended = false
  const flush = (): void => {
    while (waiting.length > 0 && (lines.length > 0 || ended)) waiting.shift()?.(lines.length > 0 ? (JSON.parse(lines.shift() ?? '') as Line) : null)
  }
  socket.setEncoding('utf8').on('data', (text: string) => {
    const all = (rest + text).split('\n')
    rest = all.pop() ?? ''
    lines.push(...all)
    flush()
  })
  socket.on('error', () => undefined)
  socket.on('close', () => {
    ended = true
    flush()
  })
  let id = 0
  const send = (frame: object): void => void socket.write(`${JSON.stringify(frame)}\n`)
  const next = (): Promise<Line | null> =>
    new Promise((resolve) => {
      waiting.push(resolve)
      flush()
    })
  return {
    socket,
    send,
    next,
    call(method, params = {}) {
      send({ id: ++id, method, params })
      return next()
    },
  }
}

/** A real socket that serves the calls of a company; caps are the names of principals. */
async function served(at: Company, ports: Partial<BusPorts<null>> = {}): Promise<{ dial: () => Client; admit: (cap: string, who: SessionPrincipal) => void }> {
  const folder = fs.mkdtempSync('/tmp/mc-')
  const path = `${folder}/bus.sock`
  const live = new Map<string, SessionPrincipal>()
  const none: BusPorts<null> = {
    authenticate: (cap) => live.get(cap) ?? null,
    stopSession: () => Promise.resolve({}),
    runnerWord: () => Promise.resolve({}),
    appendTranscript: () => Promise.resolve(),
  }
  const server = net.createServer((socket) => serveCalls(socket, createBusCalls({ ...none, ...ports, broker: at.broker, log: silentLog }, null)))
  server.listen(path)
  await once(server, 'listening')
  undo.push(() => {
    server.close()
    fs.rmSync(folder, { recursive: true, force: true })
  })
  return { dial: () => client(path), admit: (cap, who) => void live.set(cap, who) }
}

const hello = { id: 0, method: 'hello', params: { cap: 'c', protocol: 1 } }

describe('hello', () => {
  test('nothing before it; wrong capabilities and versions are refused, the id comes back', async () => {
    const at = company()
    const { dial, admit } = await served(at)
    const coder = at.start('coder')
    admit('c', coder)
    for (const [frame, error] of [
      [{ id: 'x', method: 'agents', params: {} }, 'unauthenticated'],
      [{ id: 1, method: 'hello', params: { cap: 'nobody', protocol: 1 } }, 'unauthenticated'],
      [{ id: 1, method: 'hello', params: { cap: 'c', protocol: 2 } }, 'protocol-mismatch'],
      [{ id: 1, method: 'hello', params: { cap: 'c', protocol: 1, extra: 1 } }, 'invalid-request'],
      [{ id: 1, method: 'hello', params: { cap: 7, protocol: 1 } }, 'invalid-request'],
    ] as const) {
      const peer = dial()
      peer.send(frame)
      expect(await peer.next()).toMatchObject({ id: frame.id, ok: false, error })
      expect(await peer.next()).toBeNull()
    }
    const peer = dial()
    peer.send(hello)
    expect(await peer.next()).toEqual({ id: 0, ok: true, result: { protocol: 1, run: coder.run, instance: 'coder', role: 'coder', business: 'acme' } })
    expect(await peer.call('role.claim')).toMatchObject({ ok: true, result: { role: 'coder', instance: 'coder' } })
  })
})

describe('calls', () => {
  test('another run of the same role releases nothing: neither by its own call nor by naming the holder', async () => {
    const at = company()
    const { dial, admit } = await served(at)
    const [holder, other] = [at.start('coder'), at.start('coder')]
    admit('holder', holder)
    admit('other', other)
    const peers = { holder: dial(), other: dial() }
    for (const [cap, peer] of Object.entries(peers)) {
      peer.send({ id: 0, method: 'hello', params: { cap, protocol: 1 } })
      await peer.next()
    }
    await peers.holder.call('role.claim')
    await peers.other.call('role.release')
    for (const params of [{ run: holder.run }, { instance: 'coder' }, { role: 'coder' }]) {
      expect(await peers.other.call('role.release', params)).toMatchObject({ ok: false, error: 'invalid-request' })
    }
    expect(await peers.other.call('role.claim')).toMatchObject({ ok: false, error: 'role-held' })
    expect(at.broker.roles.agents().find(({ instance }) => instance === 'coder')).toMatchObject({ holder_run: holder.run })
    // the control: the holder may
    await peers.holder.call('role.release')
    expect(await peers.other.call('role.claim')).toMatchObject({ ok: true })
  })

  async function greeted(ports: Partial<BusPorts<null>> = {}, instance = 'coder') {
    const at = company()
    const { dial, admit } = await served(at, ports)
    const who = at.start(instance)
    admit('c', who)
    const greet = async (): Promise<Client> => {
      const peer = dial()
      peer.send(hello)
      await peer.next()
      return peer
    }
    return { at, who, greet, peer: await greet() }
  }

  test('a request that names its sender, an unknown method or key is invalid-request, saying which', async () => {
    const { peer } = await greeted()
    const good = { to: 'founder', class: 'NOTE', body: 'x' }
    for (const key of ['from', 'from_role', 'from_run', '__proto__x', 'constructor']) {
      const line = await peer.call('message.send', { ...good, [key]: 'pm' })
      expect(line).toMatchObject({ ok: false, error: 'invalid-request', why: `unknown key "${key}"` })
    }
    expect(await peer.call('message.send', { ...good, class: 'OTHER' })).toMatchObject({
      error: 'invalid-request',
      why: expect.stringContaining('class') as string,
    })
    for (const method of ['no-such', 'hello', 'constructor', '__proto__', 'message.show'])
      expect(await peer.call(method)).toMatchObject({ ok: false, error: 'invalid-request' })
    expect(await peer.call('message.send', good)).toMatchObject({ ok: true })
  })

  test('every method answers; ports are given the run’s own', async () => {
    const seen: unknown[] = []
    const { at, who, peer } = await greeted(
      {
        stopSession: (run) => Promise.resolve(seen.push(['stop', run])),
        runnerWord: (run, waitMs) => {
          seen.push(['wait', run, waitMs])
          return Promise.resolve({ pause: true })
        },
        appendTranscript: (run, entries) => {
          seen.push(['transcript', run, entries])
          return Promise.resolve()
        },
      },
      'pm',
    )
    const coder = at.start('coder', who)
    const asked = await at.broker.messages.send(FOUNDER, { to: 'pm', class: 'REQUEST', body: 'x' })
    for (const [method, params] of [
      ['role.claim', {}],
      ['agents', {}],
      ['message.receive', { waitMs: 0 }],
      ['message.ack', { ids: [asked.id] }],
      ['message.owed', {}],
      ['session.stop', { instance: 'coder' }],
      ['session.wait', { waitMs: 5 }],
      ['task.create', { id: 't-1', title: 'one' }],
      ['task.list', {}],
      ['task.show', { task: 't-1' }],
      ['task.assign', { task: 't-1', instance: 'coder' }],
      ['task.close', { task: 't-1' }],
      ['review.list', {}],
      ['trail', { limit: 5 }],
      ['event.record', { kind: 'x.a' }],
      ['transcript.append', { entries: [{ event: 'text', more: 1 }] }],
    ] as const) {
      expect(await peer.call(method, params), method).toMatchObject({ ok: true })
    }
    expect(seen).toEqual([
      ['stop', coder.run],
      ['wait', who.run, 5],
      ['transcript', who.run, [{ event: 'text', more: 1 }]],
    ])
    for (const [method, params] of [
      ['review.request', { task: 't-1' }],
      ['review.verdict', { request: 'q1', commit: '0'.repeat(40), verdict: 'approve' }],
      ['session.stop', { instance: 'reviewer' }],
      ['transcript.append', { entries: [{ event: 'text', at: '1970-01-01T00:00:00.000Z' }] }],
    ] as const) {
      expect(await peer.call(method, params), method).toMatchObject({ ok: false })
    }
  })

  test('session.stop stops the session that was judged, not one that somebody else launched meanwhile', async () => {
    const stopped: string[] = []
    const { at, who, peer } = await greeted({ stopSession: (run) => Promise.resolve(stopped.push(run)) }, 'pm')
    const judged = at.start('coder', who)
    // right after the record is written, and before whoever waits for that goes on
    const end = at.store.onChange(() => {
      end()
      at.end(judged)
      at.start('coder')
    })
    expect(await peer.call('session.stop', { instance: 'coder' })).toMatchObject({ ok: true, result: { instance: 'coder', run: judged.run } })
    expect(stopped).toEqual([judged.run])
    expect(at.store.sessions.liveOf('coder')?.run).not.toBe(judged.run)
  })

  test('a receive in flight on a connection that dies loses nothing: the next connection gets it', async () => {
    const { at, greet, peer } = await greeted()
    peer.send({ id: 1, method: 'message.receive', params: { waitMs: 60_000 } })
    await peer.call('agents')
    const { id } = await at.broker.messages.send(FOUNDER, { to: 'coder', class: 'NOTE', body: 'x' })
    expect(at.broker.messages.show(id).state).toBe('delivered')
    peer.socket.destroy()
    const next = await greet()
    expect(await next.call('message.receive', { waitMs: 60_000 })).toMatchObject({ ok: true, result: [{ id }] })
  })

  test('after the end of its run a connection is unauthenticated', async () => {
    const { at, who, peer } = await greeted()
    expect(await peer.call('agents')).toMatchObject({ ok: true })
    at.end(who)
    expect(await peer.call('agents')).toMatchObject({ ok: false, error: 'unauthenticated' })
  })

  test('what is our own fault is internal and says nothing', async () => {
    const { peer } = await greeted({ runnerWord: () => Promise.reject(new Error('/secret/path')) })
    expect(await peer.call('session.wait')).toEqual({ id: 1, ok: false, error: 'internal' })
    const refused = await greeted({ runnerWord: () => Promise.reject(new AppError('not-running', 'it does not run')) })
    expect(await refused.peer.call('session.wait')).toEqual({ id: 1, ok: false, error: 'not-running', why: 'it does not run' })
  })
})

test('a run whose hour is full may read and no longer write; others may, and it may in the next hour', async () => {
  let nowMs = 0
  const at = company({ clock: { ...systemClock, monotonic: () => nowMs } })
  const { dial, admit } = await served(at)
  const [coder, reviewer] = [at.start('coder'), at.start('reviewer')]
  admit('c', coder)
  admit('r', reviewer)
  const [mine, other] = [dial(), dial()]
  await mine.call('hello', { cap: 'c', protocol: 1 })
  await other.call('hello', { cap: 'r', protocol: 1 })
  const note = { to: 'reviewer', class: 'NOTE', body: 'hi' }
  expect(await mine.call('message.send', note)).toMatchObject({ ok: true })
  const asked: string[] = []
  for (const body of ['one', 'two']) asked.push((await at.broker.messages.send({ kind: 'founder', name: 'ada' }, { to: 'coder', class: 'REQUEST', body })).id)
  at.broker.budget.spend(coder.run, 20_000, 0)
  for (const [method, params] of [
    ['role.claim', {}],
    ['message.send', note],
    ['event.record', { kind: 'x.a' }],
    ['review.request', { task: 't-1' }],
  ] as const)
    expect(await mine.call(method, params)).toMatchObject({ ok: false, error: 'too-many-records' })
  const answer = (id: string | undefined, bytes: number): object => ({ to: 'founder', class: 'RESULT', in_reply_to: id, body: 'x'.repeat(bytes) })
  expect(await mine.call('message.send', answer(asked[0], 4097))).toMatchObject({ ok: false, error: 'too-many-records' })
  for (const id of asked) expect(await mine.call('message.send', answer(id, 4096))).toMatchObject({ ok: true })
  for (const method of ['agents', 'trail', 'message.receive', 'role.release']) expect(await mine.call(method)).toMatchObject({ ok: true })
  expect(await other.call('role.claim')).toMatchObject({ ok: true })
  nowMs += 3_600_001
  expect(await mine.call('role.claim')).toMatchObject({ ok: true })
})
