import { describe, expect, test } from 'vitest'
import { sendError } from '../../fixtures/gateway/provider.ts'
import { createFamilyLimits, toWaitMs } from '../../src/gateway/limits.ts'
import { judgeLaunch, type GateState } from '../../src/launch/gate.ts'
import { openWorld } from './world.ts'

const NOW = Date.parse('2026-01-31T09:00:00.000Z')

describe('retry-after', () => {
  test.each([
    ['30', 30_000],
    ['0.5', 500],
    ['Sat, 31 Jan 2026 09:02:00 GMT', 120_000],
    ['99999999', 7 * 86_400_000],
    [undefined, 60_000],
    ['', 60_000],
    ['0', 60_000],
    ['-5', 60_000],
    ['soon', 60_000],
    ['Sat, 31 Jan 2026 08:00:00 GMT', 60_000],
    ['1e9', 60_000],
  ])('%j is %d ms', (text, ms) => {
    expect(toWaitMs(text === undefined ? {} : { 'retry-after': text }, NOW)).toBe(ms)
  })

  test('that is missing leaves the end of the unified limit', () => {
    const reset = String(NOW / 1000 + 600)
    expect(toWaitMs({ 'anthropic-ratelimit-unified-reset': reset }, NOW)).toBe(600_000)
    expect(toWaitMs({ 'anthropic-ratelimit-unified-reset': reset, 'retry-after': '5' }, NOW)).toBe(5000)
    expect(toWaitMs({ 'anthropic-ratelimit-unified-reset': 'later' }, NOW)).toBe(60_000)
  })
})

function limitsAt(startMs: number) {
  const time = { nowMs: startMs, monotonicMs: 1000 }
  const limits = createFamilyLimits({ now: () => time.nowMs, monotonic: () => time.monotonicMs })
  const pass = (ms: number): void => {
    time.nowMs += ms
    time.monotonicMs += ms
  }
  return { limits, time, pass }
}

test('a clock that jumps ends no limit and makes none longer; what people see goes with the clock', () => {
  const { limits, time, pass } = limitsAt(NOW)
  expect(limits.note('opus', 60_000)).toBe(NOW + 60_000)
  time.monotonicMs += 0.7
  expect(limits.retryAtMs('opus')).toBe(NOW + 60_000)
  time.monotonicMs -= 0.7
  const DAY = 86_400_000
  time.nowMs += DAY
  expect(limits.current()).toEqual({ opus: '2026-02-01T09:01:00.000Z' })
  time.nowMs -= 2 * DAY
  pass(59_999)
  expect(limits.retryAtMs('opus')).toBe(NOW - DAY + 60_000)
  pass(1)
  expect(limits.retryAtMs('opus')).toBeNull()
})

test('of two limits of a family the later end counts, and each is over by itself', () => {
  const { limits, pass } = limitsAt(NOW)
  limits.note('opus', 60_000)
  limits.note('sonnet', 30_000)
  limits.note('opus', 10_000)
  expect(limits.current()).toEqual({ opus: '2026-01-31T09:01:00.000Z', sonnet: '2026-01-31T09:00:30.000Z' })
  pass(30_000)
  expect([limits.retryAtMs('sonnet'), limits.retryAtMs('opus'), limits.retryAtMs('constructor')]).toEqual([null, NOW + 60_000, null])
  pass(30_000)
  expect(limits.current()).toEqual({})
})

describe('a provider that limits', () => {
  const gate = (limited: Readonly<Record<string, string>>): GateState => ({
    launchBy: null,
    listed: [],
    instances: new Map([
      ['coder', { role: 'coder', model: 'claude-sonnet-5-5', family: 'sonnet', harness: 'claude-code' }],
      ['pm', { role: 'pm', model: 'claude-opus-5-5', family: 'opus', harness: 'claude-code' }],
    ]),
    live: [],
    max: { sonnet: 1, opus: 1 },
    limited,
    stopping: false,
    facts: { harness: null, unavailable: null },
    task: null,
  })
  const launch = (instance: string, limited: Readonly<Record<string, string>>) =>
    judgeLaunch({ instance, task: null, asker: { kind: 'founder', name: 'ada' } }, gate(limited))

  test.each([
    [429, 'rate_limit_error'],
    [529, 'overloaded_error'],
  ])('by %d keeps launches of that family out until it is over, and no others', async (status, type) => {
    await using world = await openWorld()
    expect(launch('coder', world.gateway.limited()).ok).toBe(true)
    void world.provider.next(sendError(status, type, { 'retry-after': '90' }))
    const answer = await world.ask()
    expect([answer.status, answer.headers['retry-after'], answer.text]).toEqual([status, '90', expect.stringContaining(type)])
    expect(launch('coder', world.gateway.limited())).toMatchObject({
      ok: false,
      step: 6,
      code: 'rate-limited',
      why: expect.stringContaining('2026-01-31T09:01:30.000Z') as string,
    })
    expect([world.gateway.retryAtMs('sonnet'), world.gateway.retryAtMs('opus')]).toEqual([NOW + 90_000, null])
    expect(launch('pm', world.gateway.limited()).ok).toBe(true)
    world.pass(90_000)
    expect([launch('coder', world.gateway.limited()).ok, world.gateway.retryAtMs('sonnet')]).toEqual([true, null])
  })

  test('by anything else keeps nobody out', async () => {
    await using world = await openWorld()
    for (const status of [400, 403, 500, 503]) {
      void world.provider.next(sendError(status, 'api_error', { 'retry-after': '90' }))
      expect((await world.ask()).status).toBe(status)
    }
    expect([world.gateway.limited(), world.gateway.warnings()]).toEqual([{}, []])
  })
})

test('a credential that is refused is warned about, in log and status, until it is taken again', async () => {
  await using world = await openWorld()
  void world.provider.next(sendError(401, 'authentication_error'))
  void world.provider.next(sendError(401, 'authentication_error'))
  expect((await world.ask()).status).toBe(401)
  world.time.nowMs += 1000
  await world.ask()
  expect(world.gateway.warnings()).toEqual([expect.stringContaining('refused ANTHROPIC_API_KEY since 2026-01-31T09:00:00.000Z')])
  expect(world.logged()).toContain('model provider refused the session credential')
  // a session's own mistake says nothing about the credential
  await using other = await openWorld()
  expect((await other.ask({ headers: { 'x-api-key': 'x' } })).status).toBe(401)
  expect(other.gateway.warnings()).toEqual([])
  await world.ask()
  expect(world.gateway.warnings()).toEqual([])
})
