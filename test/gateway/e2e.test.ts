import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { openProvider, type ScriptedProvider, sendError, sendStream } from '../../fixtures/gateway/provider.ts'
import { packageRoot } from '../../src/core/paths.ts'
import type { RunRow, StatusRow, UsageRow } from '../../src/protocol/rows.ts'
import { type RunningHost, until, World } from '../helpers/world.ts'

const REAL_KEY = 'sk-ant-api03-the-real-one'
const MODEL = 'claude-sonnet-5-5'

interface Said {
  readonly status: number
  readonly text: string
  readonly env: Readonly<Record<string, string>>
}

/** A business whose coder and reviewer run the fixture program, before a scripted provider. */
async function openCompany(world: World, provider: ScriptedProvider): Promise<RunningHost> {
  const seat = { grants: [], vars: { harness: 'claude-code', model: MODEL } }
  world.system.harnesses = { 'claude-code': { bin: join(packageRoot(), 'fixtures', 'gateway', 'agent.mjs'), models: ['claude-haiku-4-5'] } }
  world.business.roles = { coder: seat, reviewer: seat, pm: { grants: [], vars: { harness: 'script', model: MODEL } } }
  world.business.launch = { instances: [], max: { sonnet: 3 } }
  world.configure()
  return await world.start({ env: { ANTHROPIC_API_KEY: REAL_KEY, ANTHROPIC_BASE_URL: provider.url } })
}

const say = async (world: World, request: object): Promise<Said> => JSON.parse(await world.ask('coder', JSON.stringify(request))) as Said
const message = (model = MODEL): object => ({ body: { model, max_tokens: 5, messages: [{ role: 'user', content: 'hi' }] } })

/** Every file below a directory that holds this text. */
function filesWith(dir: string, text: string): string[] {
  return readdirSync(dir, { withFileTypes: true }).flatMap((entry) => {
    const path = join(dir, entry.name)
    if (entry.isDirectory()) return filesWith(path, text)
    return entry.isFile() && (statSync(path).mode & 0o400) !== 0 && readFileSync(path).includes(text) ? [path] : []
  })
}

const modelSockets = (world: World): string[] => readdirSync(join(world.data, 'bus-host')).filter((name) => /^[0-9a-f]{12}$/.test(name))

describe('a session with a model', () => {
  test('reaches it without its credential, in a sandbox without network, and what it takes is counted', async () => {
    await using provider = await openProvider()
    await using world = new World()
    const host = await openCompany(world, provider)
    await world.must(['launch', 'coder'])
    void provider.next(sendStream('hi', { input: 11, output: 22, read: 33, written: 44 }))
    const said = await say(world, message())
    expect([said.status, said.text.includes('message_stop')]).toEqual([200, true])
    expect(provider.seen[0]?.headers['x-api-key']).toBe(REAL_KEY)
    expect(said.env.ANTHROPIC_API_KEY).toMatch(/^sk-ant-api03-[\w-]{43}$/)
    expect(JSON.stringify(said.env)).not.toContain(REAL_KEY)
    expect(modelSockets(world)).toHaveLength(1)

    expect((await say(world, message('claude-haiku-4-5'))).status).toBe(200)
    expect(await say(world, message('claude-opus-5-5'))).toMatchObject({ status: 403, text: expect.stringContaining('model-not-allowed') as string })
    expect(await say(world, { ...message(), token: 'sk-ant-api03-a-guess' })).toMatchObject({ status: 401 })
    expect(provider.seen).toHaveLength(2)

    const [usage] = await world.must<UsageRow[]>(['usage', '--by', 'family'])
    expect(usage).toEqual({ name: 'sonnet', requests: 2, incomplete: 0, inputTokens: 21, outputTokens: 27, cacheReadTokens: 36, cacheWriteTokens: 46 })
    expect(await world.must<UsageRow[]>(['usage', '--since', '1h'])).toMatchObject([{ name: 'coder', requests: 2 }])

    await world.must(['stop', 'coder'])
    await until('the socket is gone', () => modelSockets(world).length === 0)
    expect(filesWith(world.data, REAL_KEY)).toEqual([])
    expect(filesWith(world.data, said.env.MOSAIC_RUN_ID ?? '-')).not.toEqual([])
    expect(host.output()).toContain('model gateway opened')
    expect(host.output()).not.toContain(REAL_KEY)
  })

  test('whose provider limits the family: no launches of it until then, and ps and status say when', async () => {
    await using provider = await openProvider()
    await using world = new World()
    await openCompany(world, provider)
    await world.must(['launch', 'coder'])
    await world.must(['launch', 'pm'])
    void provider.next(sendError(429, 'rate_limit_error', { 'retry-after': '4' }))
    expect((await say(world, message())).status).toBe(429)
    const { capacity } = await world.must<StatusRow>(['bus', 'status'])
    expect([capacity.sonnet?.retryAt, capacity.opus?.retryAt]).toEqual([expect.any(String), null])
    const waiting = (await world.must<RunRow[]>(['ps'])).map(({ instance, waitingUntil }) => [instance, waitingUntil])
    expect(waiting).toEqual([
      ['coder', capacity.sonnet?.retryAt],
      ['pm', null],
    ])
    const refused = await world.json(['launch', 'reviewer'])
    expect([refused.code, refused.error.code, refused.error.message.includes(capacity.sonnet?.retryAt ?? '-')]).toEqual([3, 'rate-limited', true])
    await until('the limit is over', async () => (await world.must<StatusRow>(['bus', 'status'])).capacity.sonnet?.retryAt === null)
    await world.must(['launch', 'reviewer'])
  })

  test('whose credential the provider refuses is warned about', async () => {
    await using provider = await openProvider()
    await using world = new World()
    const host = await openCompany(world, provider)
    await world.must(['launch', 'coder'])
    void provider.next(sendError(401, 'authentication_error'))
    expect((await say(world, message())).status).toBe(401)
    const { warnings } = await world.must<StatusRow>(['bus', 'status'])
    expect(warnings).toEqual([expect.stringContaining('refused ANTHROPIC_API_KEY')])
    expect(host.output()).toContain('model provider refused the session credential')
  })

  test('that a dead host left has no socket under the next', async () => {
    await using provider = await openProvider()
    await using world = new World()
    const host = await openCompany(world, provider)
    await world.must(['launch', 'coder'])
    expect(modelSockets(world)).toHaveLength(1)
    await host.crash()
    expect(modelSockets(world)).toHaveLength(1)
    await world.start({ env: { ANTHROPIC_API_KEY: REAL_KEY } })
    expect(modelSockets(world)).toEqual([])
  })
})
