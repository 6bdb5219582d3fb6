import { existsSync, mkdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { describe, expect, test } from 'vitest'
import { sendJson } from '../../fixtures/gateway/provider.ts'
import { AppError } from '../../src/core/errors.ts'
import { silentLog } from '../../src/core/log.ts'
import { openGateway } from '../../src/gateway/gateway.ts'
import { MESSAGE, MODEL, openWorld, REAL_KEY, RUN, send, served } from './world.ts'

const REAL_TOKEN = 'sk-ant-oat01-the-real-one'

describe('the credential', () => {
  test('replaces the placeholder, and leaves nothing else of who asked', async () => {
    await using world = await openWorld()
    const headers = {
      'anthropic-beta': ['a-1', 'b-2'],
      'anthropic-version': '2023-06-01',
      host: 'evil.example',
      cookie: 'a=b',
      'x-forwarded-for': '1.2.3.4',
      'accept-encoding': 'gzip',
    }
    const answer = await world.ask({ path: '/v1/messages?beta=true', headers })
    expect([answer.status, JSON.parse(answer.text)]).toMatchObject([200, { content: [{ text: 'hello' }] }])
    const [seen] = world.provider.seen
    expect([seen?.method, seen?.url, JSON.parse(seen?.body ?? '')]).toEqual(['POST', '/v1/messages?beta=true', MESSAGE])
    expect(seen?.headers).toMatchObject({
      'x-api-key': REAL_KEY,
      host: new URL(world.provider.url).host,
      'anthropic-beta': 'a-1, b-2',
      'anthropic-version': '2023-06-01',
      'accept-encoding': 'identity',
      'content-type': 'application/json',
    })
    for (const name of ['authorization', 'cookie', 'x-forwarded-for', 'transfer-encoding', 'expect']) expect(seen?.headers).not.toHaveProperty(name)
  })

  test.each([
    ['CLAUDE_CODE_OAUTH_TOKEN', REAL_TOKEN, /^sk-ant-oat01-[\w-]{43}$/],
    ['ANTHROPIC_AUTH_TOKEN', 'a-gateway-token', /^mosaic-[\w-]{43}$/],
  ])('%s is a bearer token, and so is its placeholder', async (variable, value, shape) => {
    await using world = await openWorld({ env: { [variable]: value } })
    const placeholder = world.socket.placeholder
    expect(placeholder).toEqual({ variable, value: expect.stringMatching(shape) as string })
    const answer = await send(world.socket.path, { headers: { authorization: `Bearer ${placeholder?.value ?? ''}` } })
    expect([answer.statusCode, await text(answer)]).toEqual([200, expect.stringContaining('hello')])
    expect(world.provider.seen[0]?.headers.authorization).toBe(`Bearer ${value}`)
    expect(world.provider.seen[0]?.headers).not.toHaveProperty('x-api-key')
  })

  test('is the first of the three; a bearer token needs its base URL; none is none', async () => {
    await using all = await openWorld({ env: { ANTHROPIC_API_KEY: REAL_KEY, CLAUDE_CODE_OAUTH_TOKEN: ` ${REAL_TOKEN}\n`, ANTHROPIC_AUTH_TOKEN: 'x' } })
    expect(all.socket.placeholder?.variable).toBe('CLAUDE_CODE_OAUTH_TOKEN')
    await using bare = await openWorld({ env: { ANTHROPIC_AUTH_TOKEN: 'x', ANTHROPIC_BASE_URL: '' } })
    expect(bare.socket.placeholder).toBeNull()
    const answer = await bare.ask({ headers: { 'x-api-key': 'x' } })
    expect([answer.status, answer.code]).toEqual([403, 'no-session-credential'])
  })

  test('is not used for whoever shows none, another, a second one, or that of another run', async () => {
    await using world = await openWorld()
    const other = await world.gateway.open(served({ run: 'r00000000000b' }))
    expect(other.placeholder?.value).not.toBe(world.socket.placeholder?.value)
    const wrong = ['', 'x', REAL_KEY, other.placeholder?.value ?? '', `${world.auth['x-api-key'] ?? ''}x`]
    for (const value of wrong) expect((await world.ask({ headers: { 'x-api-key': value } })).code).toBe('unauthenticated')
    expect((await world.ask({ headers: { authorization: `Bearer ${REAL_KEY}` } })).code).toBe('unauthenticated')
    const none = await send(world.socket.path, {})
    expect([none.statusCode, await text(none)]).toEqual([401, expect.stringContaining('authentication_error')])
    expect(world.provider.seen).toEqual([])
    expect((await world.ask({ headers: { authorization: `Bearer ${world.auth['x-api-key'] ?? ''}` } })).status).toBe(200)
  })

  test('is in no log, no answer and no record, whatever happens', async () => {
    await using world = await openWorld()
    await world.ask()
    void world.provider.next((response) => response.destroy())
    await world.ask()
    void world.provider.next((response) => response.writeHead(401).end('{}'))
    await world.ask()
    await world.ask({ headers: { 'x-api-key': REAL_KEY } })
    const all = world.logged() + JSON.stringify(world.usage) + world.gateway.warnings().join()
    expect(all).toContain('model provider unreachable')
    expect(all).not.toContain(REAL_KEY)
    expect(all).not.toContain(world.socket.placeholder?.value ?? '-')
  })

  test('that no header can carry, and a base URL that is none, stop the host before it starts', () => {
    const open = (env: Record<string, string>): unknown => {
      try {
        return openGateway({
          log: silentLog,
          clock: { now: () => 0, monotonic: () => 0 },
          env,
          directory: '/tmp',
          familyOf: () => null,
          record: () => undefined,
        })
      } catch (error) {
        return error
      }
    }
    for (const env of [
      { ANTHROPIC_API_KEY: 'se cret' },
      { ANTHROPIC_BASE_URL: 'nonsense' },
      { ANTHROPIC_BASE_URL: 'ftp://x' },
      { ANTHROPIC_BASE_URL: 'https://me:se-cret@x' },
      { ANTHROPIC_BASE_URL: 'https://x?se-cret' },
    ]) {
      const refused = open(env) as AppError
      expect(refused).toBeInstanceOf(AppError)
      expect([refused.code, /se.?cret/.test(refused.message)]).toEqual(['config-invalid', false])
    }
    expect(open({ ANTHROPIC_BASE_URL: 'https://x/v', ANTHROPIC_API_KEY: 'k' })).not.toBeInstanceOf(AppError)
  })
})

describe('what may be asked', () => {
  test.each([
    ['GET', '/v1/messages'],
    ['POST', '/v1/files'],
    ['POST', '/v1/messages/batches'],
    ['POST', '/v1/messages/../files'],
    ['POST', '/v1/messages/'],
    ['POST', '//v1/messages'],
    ['POST', '/v1/%6dessages'],
    ['POST', '/V1/messages'],
    ['POST', 'http://evil.example/v1/messages'],
    ['POST', '*'],
    ['DELETE', '/v1/messages'],
    ['POST', '/v1/messages?a=%0d%0a'],
  ])('%s %s is not', async (method, path) => {
    await using world = await openWorld()
    expect(['not-permitted', 'invalid-request']).toContain((await world.ask({ method, path, body: '' })).code)
    expect(world.provider.seen).toEqual([])
    expect((await world.ask()).status).toBe(200)
  })

  test('tokens may be counted, which costs none, below the path of a provider of the founder', async () => {
    await using world = await openWorld({ path: '/anthropic/' })
    void world.provider.next((response) => response.writeHead(200, { 'content-type': 'application/json' }).end('{"input_tokens":7}'))
    expect((await world.ask({ path: '/v1/messages/count_tokens' })).text).toBe('{"input_tokens":7}')
    expect(world.provider.seen[0]?.url).toBe('/anthropic/v1/messages/count_tokens')
    expect(world.usage).toEqual([])
  })

  test.each([
    ['another model', { ...MESSAGE, model: 'claude-opus-5-5' }, 'model-not-allowed'],
    ['another model for a tool', { ...MESSAGE, tools: [{ type: 'advisor', name: 'advisor', model: 'claude-opus-5-5' }] }, 'model-not-allowed'],
    ['two models, the first ours', `{"model":"${MODEL}","model":"claude-opus-5-5"}`, 'invalid-request'],
    ['two models, the last ours', `{"model":"claude-opus-5-5","model":"${MODEL}"}`, 'invalid-request'],
    ['two models, one escaped', `{"m\\u006fdel" : "claude-opus-5-5","model":"${MODEL}"}`, 'invalid-request'],
    ['two models in a tool', `{"model":"${MODEL}","tools":[{"model":"claude-opus-5-5","model":"${MODEL}"}]}`, 'invalid-request'],
    ['a Model beside its model', { ...MESSAGE, Model: 'claude-opus-5-5' }, 'invalid-request'],
    ['no model', { messages: [] }, 'invalid-request'],
    ['a model that is no text', { model: [MODEL] }, 'invalid-request'],
    ['no object', [MESSAGE], 'invalid-request'],
    ['no JSON', '{"model":', 'invalid-request'],
    ['nothing', '', 'invalid-request'],
    ['no UTF-8', Buffer.concat([Buffer.from(`{"model":"${MODEL}","a":"`), Buffer.from([0xff]), Buffer.from('"}')]), 'invalid-request'],
  ])('a body with %s is refused', async (_what, body, code) => {
    await using world = await openWorld()
    const answer = await world.ask({ body })
    expect([answer.code, answer.status]).toEqual([code, code === 'model-not-allowed' ? 403 : 400])
    expect(world.provider.seen).toEqual([])
    const talk = { ...MESSAGE, messages: [{ role: 'user', content: 'say "model": {"model":"x"}', input: { model: 'x', a: [{ model: 'y' }] } }] }
    expect((await world.ask({ body: talk })).status).toBe(200)
  })

  test('a listed model beside that of the manifest is not refused, and counts as its own family', async () => {
    await using world = await openWorld({ run: { models: [MODEL, 'claude-haiku-4-5'] } })
    expect((await world.ask({ body: { ...MESSAGE, model: 'claude-haiku-4-5' } })).status).toBe(200)
    expect(world.usage).toMatchObject([{ model: 'claude-haiku-4-5', family: 'haiku' }])
  })

  test('a compressed body is refused: its model cannot be read', async () => {
    await using world = await openWorld()
    expect((await world.ask({ headers: { 'content-encoding': 'gzip' } })).code).toBe('invalid-request')
  })
})

describe('the socket', () => {
  test('is private, its name short, and gone with its run', async () => {
    await using world = await openWorld()
    expect(statSync(world.socket.path).mode & 0o777).toBe(0o600)
    expect(world.socket.path.length).toBe(join(world.directory, 'control.sock').length)
    expect([world.gateway.serves(RUN), (await world.ask()).status]).toEqual([true, 200])
    await world.gateway.close(RUN)
    await world.gateway.close(RUN)
    expect([world.gateway.serves(RUN), existsSync(world.socket.path)]).toEqual([false, false])
    await expect(world.ask()).rejects.toThrow('ENOENT')
  })

  test('of a run that ends breaks off what is in flight', async () => {
    await using world = await openWorld()
    const arrived = world.provider.next((response) => response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders())
    const answer = await world.start()
    const atProvider = await arrived
    const broken = new Promise((resolve) => atProvider.once('close', resolve))
    await world.gateway.close(RUN)
    expect(world.usage).toMatchObject([{ outputTokens: 0, complete: false }])
    await expect(text(answer)).rejects.toThrow('aborted')
    await broken
  })

  test('that a killed host left is removed by the next, and nothing else is', async () => {
    await using world = await openWorld()
    const [left, other] = [join(world.directory, '00000000000c'), join(world.directory, 'control.sock')]
    for (const path of [left, other]) writeFileSync(path, '')
    await using second = openGateway({
      log: silentLog,
      clock: { now: () => 0, monotonic: () => 0 },
      env: {},
      directory: world.directory,
      familyOf: () => null,
      record: () => undefined,
    })
    expect([second.serves(RUN), existsSync(left), existsSync(other)]).toEqual([false, false, true])
  })

  test('has a path that a Unix socket can have, or is none', async () => {
    await using world = await openWorld()
    await using deep = openGateway({
      log: silentLog,
      clock: { now: () => 0, monotonic: () => 0 },
      env: {},
      directory: mkdirSync(join(world.directory, 'x'.repeat(90)), { recursive: true }) ?? '',
      familyOf: () => null,
      record: () => undefined,
    })
    await expect(deep.open(served())).rejects.toMatchObject({ code: 'socket-path-too-long' })
    expect(deep.serves(RUN)).toBe(false)
  })
})

test('answers keep their headers, but for those of one connection', async () => {
  await using world = await openWorld()
  void world.provider.next(sendJson('hello'))
  const { headers } = await world.ask()
  expect(headers).toMatchObject({ 'content-type': 'application/json', 'request-id': 'req_1' })
  for (const name of ['set-cookie', 'x-hop']) expect(headers).not.toHaveProperty(name)
})
