import { describe, expect, test } from 'vitest'
import { isGone, pidIn, untilGone } from '../../fixtures/harness/processes.ts'
import type { Harness, Placeholder } from '../../src/harness/contract.ts'
import { drive, endOf, textOf, withStage } from './driving.ts'

interface Subject {
  readonly harness: Harness
  /** A line of a script that runs a command. */
  readonly bash: (command: string) => string
}

const CREDENTIALS: readonly (readonly [Placeholder, Readonly<Record<string, string>>])[] = [
  [{ variable: 'ANTHROPIC_API_KEY', value: 'sk-ant-api03-stand-in' }, { 'x-api-key': 'sk-ant-api03-stand-in' }],
  [{ variable: 'ANTHROPIC_AUTH_TOKEN', value: 'stand-in' }, { authorization: 'Bearer stand-in' }],
  [{ variable: 'CLAUDE_CODE_OAUTH_TOKEN', value: 'sk-ant-oat01-stand-in' }, { authorization: 'Bearer sk-ant-oat01-stand-in' }],
]

const HOUR_MS = 3_600_000

/** It is told how long a limit lasts, and tells us. */
export const knowsTheEndOfALimit = (harness: Harness, placeholder: Placeholder): void => {
  test(`${harness.name} knows when a limit ends`, () =>
    withStage(
      harness,
      async (stage) => {
        await using driving = await drive(harness, stage)
        const before = Date.now()
        const { retryAtMs = 0 } = endOf(await driving.turn('STATUS 429 99 3600')) ?? {}
        expect(retryAtMs).toBeGreaterThanOrEqual(before + HOUR_MS)
        expect(retryAtMs).toBeLessThanOrEqual(Date.now() + HOUR_MS + 1000)
      },
      { placeholder },
    ))
}

/** What every agent program does when something goes wrong, and what it is told. */
export const behavesInTrouble = ({ harness, bash }: Subject): void => {
  describe(`${harness.name} in trouble`, () => {
    test('an API error is a failed turn that says so; the program goes on', () =>
      withStage(harness, async (stage) => {
        await using driving = await drive(harness, stage)
        expect(endOf(await driving.turn('STATUS 400 99'))).toMatchObject({ ok: false, reason: expect.stringContaining('scripted error 400') as string })
        expect(textOf(await driving.turn('SAY still here'))).toBe('still here')
      }))

    test('an error that passes is retried by the program, and the turn is well', () =>
      withStage(harness, async (stage) => {
        await using driving = await drive(harness, stage)
        const seen = await driving.turn('STATUS 500 1', 'SAY at last')
        expect(seen.map(({ event }) => event)).toContain('retry')
        expect(endOf(seen)).toMatchObject({ ok: true, reason: null, text: 'at last' })
      }))

    test('an answer that breaks off is no answer', () =>
      withStage(harness, async (stage) => {
        await using driving = await drive(harness, stage)
        expect(endOf(await driving.turn('DROP 1', 'SAY whole'))).toMatchObject({ ok: true, text: 'whole' })
      }))

    test.each([429, 529])('%i is an outcome of its own, with the time to try again', (status) =>
      withStage(harness, async (stage) => {
        await using driving = await drive(harness, stage)
        const before = Date.now()
        const ended = endOf(await driving.turn(`STATUS ${String(status)} 99 3600`))
        expect(ended?.ok).toBe(false)
        expect(ended?.retryAtMs).toBeGreaterThan(before + 30_000)
        expect(ended?.retryAtMs).toBeLessThanOrEqual(Date.now() + HOUR_MS + 1000)
        expect(endOf(await driving.turn('SAY again'))).toMatchObject({ ok: true, text: 'again' })
      }),
    )

    test('a program that crashes in mid-turn: the turn fails, then the exit that nobody expected; a later run goes on', () =>
      withStage(harness, async (stage) => {
        const first = await drive(harness, stage)
        await first.turn('SAY remembered')
        first.begin(bash('echo $PPID > program; kill -9 $PPID'))
        expect((await first.upTo('exited')).slice(-2)).toMatchObject([
          { event: 'turn-ended', ok: false, reason: 'the program ended in mid-turn: SIGKILL' },
          { event: 'exited', code: null, signal: 'SIGKILL', expected: false },
        ])
        await first.driver.close(1000)
        await using second = await drive(harness, stage, stage.resumed())
        expect(textOf(await second.turn('SAY resumed'))).toBe('resumed')
        const { body } = stage.api.requests.at(-1) ?? {}
        expect(JSON.stringify(body?.messages)).toContain('remembered')
      }))

    test('a run that resumes nothing begins a new conversation, and says so', () =>
      withStage(harness, async (stage) => {
        await using driving = await drive(harness, stage, stage.resumed())
        expect(textOf(await driving.turn('SAY new'))).toBe('new')
        expect(driving.log).toContain('there is no earlier conversation to go on with: a new one begins')
      }))

    test('a run that does not resume knows nothing of the last', () =>
      withStage(harness, async (stage) => {
        const first = await drive(harness, stage)
        await first.turn('SAY forgotten')
        await first.driver.close(2000)
        await using second = await drive(harness, stage)
        await second.turn('SAY fresh')
        expect(JSON.stringify(stage.api.requests.at(-1)?.body?.messages)).not.toContain('forgotten')
      }))

    test('its usage is what the provider counted, once', () =>
      withStage(harness, async (stage) => {
        await using driving = await drive(harness, stage)
        const seen = await driving.turn(bash('true'))
        const usage = seen.flatMap((event) => (event.event === 'usage' ? [event] : []))
        const total = (field: 'inputTokens' | 'outputTokens'): number => usage.reduce((sum, each) => sum + each[field], 0)
        expect([total('inputTokens'), total('outputTokens')]).toEqual([101 + 102, 7 + 7])
      }))

    test('says its session id, once', () =>
      withStage(harness, async (stage) => {
        await using driving = await drive(harness, stage)
        await driving.turn('SAY one')
        const seen = [...(await driving.turn('SAY two')), ...(await driving.turn('SAY three'))]
        expect(seen.map(({ event }) => event)).not.toContain('session-id')
      }))

    test('silence ends the turn, not the program', () =>
      withStage(harness, async (stage) => {
        await using driving = await drive(harness, stage, { silenceMs: 1500 })
        expect(endOf(await driving.turn('DELAY 600000', 'SAY too late'))).toMatchObject({ ok: false, reason: 'the program said nothing for 2 s' })
        expect(textOf(await driving.turn('SAY awake'))).toBe('awake')
      }))

    test.each(CREDENTIALS)('its requests carry the stand-in of $variable and its own model', (placeholder, headers) =>
      withStage(
        harness,
        async (stage) => {
          await using driving = await drive(harness, stage)
          await driving.turn('SAY one')
          for (const request of stage.api.requests.filter(({ method }) => method === 'POST')) {
            expect(request.headers).toMatchObject(headers)
            expect(request.body?.model).toBe(stage.session.model)
          }
        },
        { placeholder },
      ),
    )

    test('its instructions are in the prompt, its tools in every request', () =>
      withStage(harness, async (stage) => {
        await using driving = await drive(harness, stage)
        await driving.turn('SAY one')
        const { body } = stage.api.requests.at(-1) ?? {}
        expect(JSON.stringify(body?.system)).toContain('You are coder.')
        const names = (body?.tools ?? []).map(({ name }) => name.replace('mcp__mosaic__', ''))
        expect(names).toEqual(expect.arrayContaining(['launch', 'stop', 'send', 'answer_later', 'owed', 'agents', 'tasks', 'trail']))
        expect(names).not.toContain('verdict')
      }))

    test('a program that is not there is missing; one that ends at once has failed', () =>
      withStage(harness, async (stage) => {
        const { env } = stage.options
        const start = (bin: string): Promise<unknown> => drive(harness, stage, { env: { ...env, MOSAIC_HARNESS: bin } })
        await expect(start('')).rejects.toMatchObject({ code: 'harness-missing' })
        await expect(start('/bin/false')).rejects.toThrow('the program ended before it was ready: exit 1')
      }))

    test('a failed tool server fails the start, loudly', () =>
      withStage(harness, async (stage) => {
        await expect(drive(harness, stage, { toolSocket: '/nonexistent/tools.sock' })).rejects.toThrow(/tool server is failed|ended before it was ready/)
        await expect(drive(harness, stage, { toolSocket: null })).rejects.toThrow('no tool socket')
      }))

    test('what a command left running goes when the harness is closed in mid-turn', () =>
      withStage(harness, async (stage) => {
        const driving = await drive(harness, stage)
        driving.begin(bash('echo $$ > child; (sleep 600 & wait)'))
        await driving.upTo('tool-call')
        const child = await pidIn(`${stage.session.workspace}/child`)
        expect(await isGone(child)).toBe(false)
        await driving.driver.close(4000)
        expect((await driving.upTo('exited')).slice(-2)).toMatchObject([
          { event: 'turn-ended', ok: false },
          { event: 'exited', expected: true },
        ])
        await untilGone(child)
      }))
  })
}
