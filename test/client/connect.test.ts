import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { build } from 'esbuild'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { CLIENT_PROTOCOL, connectCalls } from '../../src/client/connect.ts'
import { AppError } from '../../src/core/errors.ts'
import { PROTOCOL_VERSION } from '../../src/protocol/common.ts'
import { type Answer, openCallServer } from './call-server.ts'

const HELLO = { protocol: 1, version: 'test' }

async function withClient(
  methods: Readonly<Record<string, Answer>>,
  body: (client: Awaited<ReturnType<typeof connectCalls>>, server: Awaited<ReturnType<typeof openCallServer>>) => Promise<void>,
): Promise<void> {
  const server = await openCallServer(methods)
  const client = await connectCalls(server.path, HELLO)
  try {
    await body(client, server)
  } finally {
    await client[Symbol.asyncDispose]()
    await server[Symbol.asyncDispose]()
  }
}

/** A promise and its resolver: an event that a test waits for, or holds back. */
function createGate(): { readonly opened: Promise<void>; open(): void } {
  let open = (): void => undefined
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { opened, open: () => open() }
}

let root: string
beforeEach(() => {
  root = mkdtempSync('/tmp/mc-')
})
afterEach(() => rmSync(root, { recursive: true, force: true }))

test('the protocol version is the one of the schemas', () => expect(CLIENT_PROTOCOL).toBe(PROTOCOL_VERSION))

test('hello comes first, with what it was given, and its result is kept', async () => {
  await withClient({ hello: (params) => ({ heard: params }) }, (client, server) => {
    expect(client.hello).toEqual({ heard: HELLO })
    expect(server.calls.map((call) => [call.id, call.method])).toEqual([[0, 'hello']])
    return Promise.resolve()
  })
})

test('requests in flight are answered in any order, each to its own caller', async () => {
  const gate = createGate()
  const slow = async (): Promise<string> => {
    await gate.opened
    return 'slow'
  }
  const fast = (): string => {
    gate.open()
    return 'fast'
  }
  await withClient({ slow, fast }, async (client) => {
    expect(await Promise.all([client.call('slow'), client.call('fast')])).toEqual(['slow', 'fast'])
  })
})

test('many requests at once and large ones come through whole', async () => {
  await withClient({ echo: ({ text }) => text }, async (client) => {
    const large = 'ü€😀'.repeat(40_000)
    expect(await client.call('echo', { text: large })).toBe(large)
    const texts = Array.from({ length: 60 }, (_, at) => `${String(at)}-${'x'.repeat(5_000)}`)
    expect(await Promise.all(texts.map((text) => client.call('echo', { text })))).toEqual(texts)
  })
})

test('a request past the frame limit is refused here, and the connection goes on', async () => {
  await withClient({ echo: ({ text }) => text }, async (client) => {
    await expect(client.call('echo', { text: 'x'.repeat(600_000) })).rejects.toMatchObject({ code: 'invalid-request' })
    expect(await client.call('echo', { text: 'still here' })).toBe('still here')
  })
})

test('a refusal has the code, the words, the hint and the data of the host', async () => {
  const refuse = (): never => {
    throw new AppError('task-closed', 't-1 is closed', { hint: 'mosaic task list', data: { task: 't-1' } })
  }
  await withClient({ refuse }, async (client) => {
    await expect(client.call('refuse')).rejects.toMatchObject({
      code: 'task-closed',
      message: 't-1 is closed',
      hint: 'mosaic task list',
      data: { task: 't-1' },
    })
    await expect(client.call('refuse')).rejects.toBeInstanceOf(AppError)
  })
})

test('our own fault on the host is internal, with the fixed text of the table', async () => {
  await withClient({}, async (client) => {
    await expect(client.call('nothing')).rejects.toMatchObject({ code: 'internal', message: 'the bus host failed; its log says how' })
  })
})

test('everything in flight is rejected when the host closes, and so is every later request', async () => {
  const [begun, never] = [createGate(), createGate()]
  const hang = async (): Promise<void> => {
    begun.open()
    await never.opened
  }
  await withClient({ hang }, async (client, server) => {
    const calls = [client.call('hang'), client.call('hang')]
    const outcomes = Promise.allSettled(calls)
    await begun.opened
    await server.stop()
    await client.closed
    for (const outcome of await outcomes) expect(outcome).toMatchObject({ status: 'rejected', reason: { code: 'host-not-running' } })
    await expect(client.call('hang')).rejects.toMatchObject({ code: 'host-not-running' })
  })
})

test('our own close rejects what is in flight; closing twice is closing once', async () => {
  const begun = createGate()
  const hang = (_: unknown, signal: AbortSignal): Promise<void> => {
    begun.open()
    return new Promise((resolve) => signal.addEventListener('abort', () => resolve()))
  }
  await withClient({ hang }, async (client) => {
    const outcome = expect(client.call('hang')).rejects.toMatchObject({ code: 'host-not-running' })
    await begun.opened
    client.close()
    client.close()
    await outcome
    await client.closed
  })
})

test('an aborted request is rejected with the reason, and its late answer harms nobody', async () => {
  const [begun, gate] = [createGate(), createGate()]
  const slow = async (): Promise<string> => {
    begun.open()
    await gate.opened
    return 'late'
  }
  await withClient({ slow, echo: ({ text }) => text }, async (client) => {
    const stop = new AbortController()
    const outcome = expect(client.call('slow', {}, { signal: stop.signal })).rejects.toMatchObject({ code: 'interrupted' })
    await begun.opened
    stop.abort(new AppError('interrupted', 'interrupted'))
    await outcome
    gate.open()
    expect(await client.call('echo', { text: 'on' })).toBe('on')
    await expect(client.call('echo', { text: 'off' }, { signal: stop.signal })).rejects.toMatchObject({ code: 'interrupted' })
  })
})

test('a refused hello is thrown, and the connection is closed', async () => {
  const hello = (): never => {
    throw new AppError('protocol-mismatch', 'protocol 2 is spoken here')
  }
  const server = await openCallServer({ hello })
  await expect(connectCalls(server.path, HELLO)).rejects.toMatchObject({ code: 'protocol-mismatch', message: 'protocol 2 is spoken here' })
  await server[Symbol.asyncDispose]()
})

test('nobody there, or a socket that was left over: host-not-running, with the way to start one', async () => {
  const path = join(root, 's')
  await expect(connectCalls(path, HELLO)).rejects.toMatchObject({ code: 'host-not-running', hint: 'mosaic bus start' })
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(path, resolve))
  // the name stays when the process goes: close() would unlink it
  const { linkSync } = await import('node:fs')
  linkSync(path, join(root, 'left'))
  await new Promise((resolve) => server.close(resolve))
  await expect(connectCalls(join(root, 'left'), HELLO)).rejects.toMatchObject({ code: 'host-not-running' })
})

test('a host that accepts and never answers costs a deadline', async () => {
  const path = join(root, 's')
  const server = createServer((socket) => socket.on('error', () => undefined).resume())
  await new Promise<void>((resolve) => server.listen(path, resolve))
  await expect(connectCalls(path, HELLO, { helloTimeoutMs: 50 })).rejects.toMatchObject({ code: 'timeout' })
  await expect(connectCalls(path, HELLO, { signal: AbortSignal.abort(new AppError('interrupted', 'interrupted')) })).rejects.toMatchObject({
    code: 'interrupted',
  })
  await new Promise((resolve) => server.close(resolve))
})

test('what is no JSON ends the connection as internal', async () => {
  const path = join(root, 's')
  const server = createServer((socket) => {
    socket.on('error', () => undefined)
    socket.once('data', () => socket.write('this is no reply\n'))
  })
  await new Promise<void>((resolve) => server.listen(path, resolve))
  await expect(connectCalls(path, HELLO)).rejects.toMatchObject({ code: 'internal' })
  await new Promise((resolve) => server.close(resolve))
})

test('a path that no Unix socket can have is refused before Node cuts it', async () => {
  await expect(connectCalls(`/tmp/${'x'.repeat(120)}`, HELLO)).rejects.toMatchObject({ code: 'socket-path-too-long' })
})

test('the client brings no zod with it; the schemas, the control, do', async () => {
  const inputsOf = async (entry: string): Promise<string[]> => {
    const { metafile } = await build({
      entryPoints: [entry],
      bundle: true,
      platform: 'node',
      format: 'esm',
      write: false,
      metafile: true,
      external: ['pino', 'koffi'],
    })
    return Object.keys(metafile.inputs).filter((path) => path.includes('node_modules/zod'))
  }
  expect(await inputsOf('src/client/control.ts')).toEqual([])
  expect((await inputsOf('src/protocol/control.ts')).length).toBeGreaterThan(0)
})
