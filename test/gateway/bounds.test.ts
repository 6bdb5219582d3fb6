import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import type { Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { describe, expect, test } from 'vitest'
import { heldBytes } from '../helpers/memory.ts'
import { openProvider, type Script, sendStream, sse, streamOf } from '../../fixtures/gateway/provider.ts'
import { MESSAGE, openWorld, RUN, send, served, type World } from './world.ts'

const begin: Script = (response) => {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  response.flushHeaders()
}

const closed = (emitter: { once: (event: 'close', listener: () => void) => unknown }): Promise<void> => new Promise((resolve) => emitter.once('close', resolve))

/** Everything that the socket says until it is closed. */
async function allOf(socket: Socket): Promise<string> {
  let said = ''
  socket.on('data', (chunk: Buffer) => void (said += chunk.toString()))
  await closed(socket.on('error', () => undefined))
  return said
}

const BODY = JSON.stringify(MESSAGE)
const head = (world: World, ...lines: string[]): string =>
  ['POST /v1/messages HTTP/1.1', 'Host: localhost', `x-api-key: ${world.auth['x-api-key'] ?? ''}`, ...lines, '', ''].join('\r\n')
const whole = (world: World, ...lines: string[]): string => `${head(world, `Content-Length: ${String(BODY.length)}`, ...lines)}${BODY}`

describe('a stream', () => {
  test('passes byte by byte as it comes, nothing held back', async () => {
    await using world = await openWorld()
    const arrived = world.provider.next(begin)
    const answer = await world.start({ body: { ...MESSAGE, stream: true } })
    expect([answer.statusCode, answer.headers['content-type']]).toEqual([200, 'text/event-stream'])
    const atProvider = await arrived
    const pieces = streamOf('ü'.repeat(3)).flatMap((event) => [event.slice(0, 9), event.slice(9)])
    for (const piece of pieces) {
      const next = once(answer, 'data')
      atProvider.write(piece)
      expect(String((await next)[0])).toBe(piece)
    }
    const ended = once(answer, 'end')
    atProvider.end()
    await ended
    expect(world.usage).toMatchObject([{ outputTokens: 5, complete: true }])
  })

  test('that the provider breaks off is broken off for the session, not ended', async () => {
    await using world = await openWorld()
    void world.provider.next((response) => {
      begin(response, { method: '', url: '', headers: {}, body: '' })
      response.write(streamOf('x')[0], () => response.destroy())
    })
    await expect(world.start().then(text)).rejects.toThrow('aborted')
    void world.provider.next(sendStream('x'))
    expect((await world.ask()).text).toBe(streamOf('x').join(''))
  })

  test('whose session is gone is broken off at the provider, and its slot is free', async () => {
    await using world = await openWorld()
    for (let round = 0; round < 9; round++) {
      const arrived = world.provider.next(begin)
      const answer = await world.start()
      const gone = closed(await arrived)
      answer.destroy()
      await gone
    }
    expect((await world.ask()).status).toBe(200)
    expect(world.usage.filter(({ complete }) => !complete)).toHaveLength(9)
  })

  test('that ends with an overload limits the family', async () => {
    await using world = await openWorld()
    void world.provider.next((response) => {
      begin(response, { method: '', url: '', headers: {}, body: '' })
      response.end(sse({ type: 'error', error: { type: 'overloaded_error', message: 'x' } }))
    })
    await world.ask()
    expect(world.gateway.limited()).toEqual({ sonnet: '2026-01-31T09:01:00.000Z' })
  })
})

describe('a request', () => {
  test('is one of at most eight in flight a run', async () => {
    await using world = await openWorld()
    const held = await Promise.all(
      Array.from({ length: 8 }, async () => {
        const arrived = world.provider.next(begin)
        return { answer: await world.start(), arrived }
      }),
    )
    const ninth = await world.ask()
    expect([ninth.status, ninth.code, ninth.headers['retry-after']]).toEqual([429, 'too-many-requests', '1'])
    expect(world.gateway.limited()).toEqual({})
    const [first] = held
    const done = first === undefined ? undefined : once(first.answer.resume(), 'end')
    ;(await first?.arrived)?.end()
    await done
    expect((await world.ask()).status).toBe(200)
  })

  test('gets no redirect, and none is followed', async () => {
    await using world = await openWorld()
    await using elsewhere = await openProvider()
    for (const status of [301, 302, 303, 307, 308]) {
      void world.provider.next((response) => response.writeHead(status, { location: `${elsewhere.url}/v1/messages` }).end())
      const answer = await world.ask()
      expect([answer.status, answer.code, answer.headers.location]).toEqual([502, 'provider-unreachable', undefined])
    }
    expect(elsewhere.seen).toEqual([])
    expect(world.provider.seen).toHaveLength(5)
  })

  test('gets no answer whose usage could not be read', async () => {
    await using world = await openWorld()
    void world.provider.next((response) => response.writeHead(200, { 'content-encoding': 'gzip' }).end('x'))
    expect((await world.ask()).code).toBe('provider-unreachable')
  })

  test('is answered when the provider is not there, or says nothing', async () => {
    await using away = await openWorld({ env: { ANTHROPIC_API_KEY: 'k', ANTHROPIC_BASE_URL: 'http://127.0.0.1:1' } })
    const answer = await away.ask()
    expect([answer.status, answer.code, answer.text.includes('127.0.0.1')]).toEqual([502, 'provider-unreachable', false])
    await using silent = await openWorld({ bounds: { idleMs: 50 } })
    void silent.provider.next(() => undefined)
    expect((await silent.ask()).code).toBe('timeout')
    await using slow = await openWorld({ bounds: { exchangeMs: 50 } })
    void slow.provider.next(begin)
    await expect(slow.start().then(text)).rejects.toThrow('aborted')
    expect(slow.gateway.serves(RUN)).toBe(true)
  })

  test('has a body of a bounded size, said or counted', async () => {
    await using world = await openWorld({ bounds: { bodyBytes: 200 } })
    const big = { ...MESSAGE, more: 'x'.repeat(200) }
    expect((await world.ask({ body: big })).status).toBe(413)
    expect((await world.ask({ body: big, headers: { 'transfer-encoding': 'chunked' } })).code).toBe('body-too-big')
    expect((await world.ask({ body: { ...MESSAGE, more: 'x'.repeat(80) } })).status).toBe(200)
  })

  test('holds memory until its answer begins, and never all of it', async () => {
    const bytes = 1000
    const body = { ...MESSAGE, more: 'x'.repeat(bytes - JSON.stringify({ ...MESSAGE, more: '' }).length) }
    await using world = await openWorld({ bounds: { allBodiesBytes: 3 * bytes } })
    const other = await world.gateway.open(served({ run: 'r00000000000b' }))
    const askOther = async (more: object): Promise<number | undefined> =>
      (await send(other.path, { headers: { 'x-api-key': other.placeholder?.value ?? '' }, body: more })).statusCode
    const arrived = world.provider.next(() => undefined)
    const first = world.start({ body })
    const atProvider = await arrived
    expect((await world.ask({ body })).code).toBe('too-many-requests')
    expect(await askOther(body)).toBe(200)
    begin(atProvider, { method: '', url: '', headers: {}, body: '' })
    const answer = await first
    expect((await world.ask({ body })).status).toBe(200)
    const ended = once(answer.resume(), 'end')
    atProvider.end()
    await ended
  })

  test('whose body comes byte by byte costs the host its bytes, not hundreds of times as much', async () => {
    await using world = await openWorld()
    const body = JSON.stringify({ ...MESSAGE, more: 'x'.repeat(100_000) })
    const raw = await world.raw()
    const said = allOf(raw)
    const before = heldBytes()
    raw.write(head(world, 'Transfer-Encoding: chunked', 'Connection: close'))
    const end = body.length - 100
    for (let at = 0; at < end; at += 50) {
      const pieces = Array.from({ length: Math.min(50, end - at) }, (_, n) => `1\r\n${body.charAt(at + n)}\r\n`).join('')
      if (!raw.write(pieces)) await once(raw, 'drain')
    }
    // another request is answered, so what was sent before it has been read
    await world.ask()
    expect(heldBytes() - before).toBeLessThan(100 * body.length)
    raw.write(`64\r\n${body.slice(end)}\r\n0\r\n\r\n`)
    expect(await said).toContain('200 OK')
  })

  test('goes over a connection that is kept', async () => {
    await using world = await openWorld()
    for (let round = 0; round < 3; round++) await world.ask()
    expect([world.provider.seen.length, world.provider.connections()]).toEqual([3, 1])
  })
})

describe('what is smuggled', () => {
  test.each([
    ['a length beside chunks', (w: World) => `${head(w, 'Transfer-Encoding: chunked', 'Content-Length: 4')}0\r\n\r\n${whole(w)}`],
    ['two lengths', (w: World) => `${head(w, 'Content-Length: 0', `Content-Length: ${String(BODY.length)}`)}${BODY}`],
    ['chunks that are not last', (w: World) => `${head(w, 'Transfer-Encoding: chunked, identity')}0\r\n\r\n`],
    ['chunks of another spelling', (w: World) => `${head(w, 'Transfer-Encoding: xchunked')}0\r\n\r\n`],
    ['a space before the colon', (w: World) => `${head(w, 'Content-Length : 0')}${BODY}`],
    ['a folded header', (w: World) => head(w, 'X-A: b', ' c: d', 'Content-Length: 0')],
    ['a bare LF', (w: World) => head(w, 'X-A: b\nContent-Length: 0')],
    ['a bare CR', (w: World) => head(w, 'X-A: b\rX-B: c', 'Content-Length: 0')],
    ['a NUL', (w: World) => head(w, 'X-A: \0', 'Content-Length: 0')],
    ['no host', (w: World) => whole(w).replace('Host: localhost\r\n', '')],
    ['a CONNECT', () => 'CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example\r\n\r\n'],
    ['HTTP/2', () => 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
  ])('%s never reaches the provider', async (_what, bytes) => {
    await using world = await openWorld({ bounds: { headMs: 500, requestMs: 500, keptMs: 500 } })
    const raw = await world.raw()
    const said = allOf(raw)
    raw.write(bytes(world))
    expect(await said).toMatch(/^(HTTP\/1\.1 4\d\d |$)/)
    expect(world.provider.seen).toEqual([])
    const good = await world.raw()
    const answer = allOf(good)
    good.write(whole(world, 'Connection: close'))
    expect(await answer).toContain('200 OK')
  })

  test('a second request in the body of the first is its body; one behind it is a request of its own', async () => {
    await using world = await openWorld()
    const hidden = await world.raw()
    const inner = whole(world, 'Connection: close')
    const refused = allOf(hidden)
    hidden.write(`${head(world, `Content-Length: ${String(inner.length)}`, 'Connection: close')}${inner}`)
    expect(await refused).toContain('the body is no JSON')
    expect(world.provider.seen).toEqual([])
    const raw = await world.raw()
    const both = allOf(raw)
    raw.write(whole(world) + whole(world, 'Connection: close').replace(/x-api-key: \S+/, 'x-api-key: none'))
    expect((await both).match(/HTTP\/1.1 \d+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 401'])
    expect(world.provider.seen).toHaveLength(1)
  })

  test('a chunked body goes on with a length, and headers that Connection names stay here', async () => {
    await using world = await openWorld()
    const raw = await world.raw()
    const answer = allOf(raw)
    const chunk = `${BODY.length.toString(16)}\r\n${BODY}\r\n0\r\nTrailer: x\r\n\r\n`
    raw.write(
      `${head(world, 'Host: evil.example', 'Transfer-Encoding: chunked', 'Connection: close, X-Secret', 'X-Secret: 1', 'X-Kept: 2', 'Upgrade: h2c', 'TE: trailers')}${chunk}`,
    )
    expect(await answer).toContain('200 OK')
    const [seen] = world.provider.seen
    expect([seen?.body, seen?.headers['content-length'], seen?.headers['x-kept']]).toEqual([BODY, String(BODY.length), '2'])
    expect(seen?.headers.host).toBe(new URL(world.provider.url).host)
    for (const name of ['transfer-encoding', 'x-secret', 'upgrade', 'te', 'trailer']) expect(seen?.headers).not.toHaveProperty(name)
  })
})

describe('a peer', () => {
  test('that is silent, slow or half-open costs its own connection only', async () => {
    await using world = await openWorld({ bounds: { headMs: 100, requestMs: 200 } })
    const [silent, slow, half] = [await world.raw(), await world.raw(), await world.raw()]
    slow.write(`${head(world, 'Content-Length: 1000')}{"model"`)
    half.end('POST /v1/mess')
    const ends = [silent, slow, half].map(allOf)
    expect((await world.ask()).status).toBe(200)
    expect(await Promise.all(ends)).toEqual([expect.stringContaining('408'), expect.stringContaining('408'), expect.not.stringContaining('200')])
    expect(world.provider.seen).toHaveLength(1)
    expect((await world.ask()).status).toBe(200)
  })

  test('that opens many connections gets sixteen', async () => {
    await using world = await openWorld()
    const peers = await Promise.all(Array.from({ length: 17 }, () => world.raw()))
    const dropped = await Promise.race(peers.map((peer) => closed(peer.resume().on('error', () => undefined)).then(() => peer)))
    expect(dropped.destroyed).toBe(true)
    expect(peers.filter((peer) => !peer.destroyed)).toHaveLength(16)
    for (const peer of peers) peer.destroy()
  })

  test('whose host has no place left is dropped, whichever run it is of, until another ends', async () => {
    await using world = await openWorld({ bounds: { allConnections: 2 } })
    const other = await world.gateway.open(served({ run: 'r00000000000b' }))
    const [first, second] = [await world.raw(), await world.raw()]
    await expect(send(other.path, { headers: world.auth })).rejects.toThrow(/hang up|ECONNRESET|EPIPE/)
    expect(second.destroyed).toBe(false)
    first.end()
    await allOf(first)
    await expect
      .poll(() =>
        send(other.path, { headers: world.auth }).then(
          ({ statusCode }) => statusCode,
          () => null,
        ),
      )
      .toBe(401)
  })

  test('that stops reading holds the provider up, not the memory of the host', async () => {
    await using world = await openWorld({ bounds: { idleMs: 300 } })
    const arrived = world.provider.next(begin)
    const reader = request({ socketPath: world.socket.path, method: 'POST', path: '/v1/messages', headers: world.auth, agent: false })
    reader.end(BODY)
    const [answer] = (await once(reader, 'response')) as [IncomingMessage]
    answer.pause()
    const atProvider = await arrived
    const broken = closed(atProvider)
    const line = `data: ${'x'.repeat(1024 * 1024)}\n\n`
    let written = 0
    const fill = (): void => {
      for (let more = true; more && written < 200; written++) more = atProvider.write(line)
    }
    atProvider.on('drain', fill)
    fill()
    await broken
    expect(written).toBeLessThan(100)
  })
})
