import { describe, expect, test } from 'vitest'
import { AppError } from '../../src/core/errors.ts'
import type { ReceivedMessage } from '../../src/protocol/rows.ts'
import type { TurnOutcome } from '../../src/runner/conversation.ts'
import { RunEnd } from '../../src/runner/run-end.ts'
import { takeTurns, type TurnDeps } from '../../src/runner/turns.ts'

const message: ReceivedMessage = {
  id: 'm-1',
  from_role: 'pm',
  from_instance: 'pm',
  from_run: 'r0123456789ab',
  class: 'REQUEST',
  body: 'hello',
  subject: null,
  in_reply_to: null,
  at: '2026-01-01T00:00:00.000Z',
}
const done: TurnOutcome = { ok: true, reason: null, text: 'hi', retryAtMs: undefined }
const failed: TurnOutcome = { ok: false, reason: 'no', text: '', retryAtMs: undefined }

/** Plays these outcomes for one message; what the bus took and what was written down. `refusal`: of what the bus does not take. */
async function play(outcomes: readonly TurnOutcome[], refusal: (body: string) => AppError | null = () => null): Promise<{ said: unknown[]; events: string[] }> {
  const left = [...outcomes]
  const said: unknown[] = []
  const events: string[] = []
  let received = false
  const call = (method: string, params: object): Promise<unknown> => {
    if (method === 'message.receive') {
      if (received) return Promise.reject(new RunEnd('stopped', 'the end of the test'))
      received = true
      return Promise.resolve([message])
    }
    const refused = 'body' in params && typeof params.body === 'string' ? refusal(params.body) : null
    if (refused !== null) return Promise.reject(refused)
    said.push({ method, ...params })
    return Promise.resolve({})
  }
  const deps: TurnDeps = {
    broker: { call },
    log: () => undefined,
    tries: 3,
    retryMs: 0,
    signal: new AbortController().signal,
    conversation: { turn: () => Promise.resolve(left.shift() ?? failed), idle: () => Promise.resolve(), ended: Promise.resolve() },
    transcript: { add: ({ event }) => events.push(event), flush: () => Promise.resolve() },
    now: () => 1000,
    setTurn: () => undefined,
  }
  await expect(takeTurns(deps)).rejects.toThrow('the end of the test')
  return { said, events }
}

const result = { method: 'message.send', to: 'pm', in_reply_to: 'm-1', class: 'RESULT' }
/** The runner's word that the turn is over. */
const ack = { method: 'message.ack', ids: ['m-1'] }

describe('takeTurns', () => {
  test('a limit of the provider is waited for, and counts as no failure', async () => {
    const limited = { ...failed, retryAtMs: 1001 }
    const { said, events } = await play([limited, failed, limited, done])
    expect(said).toEqual([{ ...result, body: 'hi' }, ack])
    expect(events).toEqual(['message', 'waiting', 'message', 'message', 'waiting', 'message'])
  })

  test('two failures are the RESULT, without an empty text', async () => {
    expect((await play([failed, failed, done])).said).toEqual([{ ...result, body: 'the turn failed: no', failed: true }, ack])
  })

  test('what is owed is tried until the host takes it; what no try can mend is not', async () => {
    let left = 20
    const full = await play([done], () => (left-- > 0 ? new AppError('disk-full', 'no') : null))
    expect(full.said).toEqual([{ ...result, body: 'hi' }, ack])
    let tries = 0
    const gone = await play([done], () => (tries++, new AppError('unknown-recipient', 'no')))
    expect([gone.said, tries]).toEqual([[ack], 1])
  })

  test('an answer that is too long for a run without any of its hour left is cut, not lost', async () => {
    const spent = await play([{ ...done, text: `begin ${'x'.repeat(10_000)}` }], (body) =>
      Buffer.byteLength(body) > 4096 ? new AppError('too-many-records', 'no') : null,
    )
    expect(spent.said).toMatchObject([{ ...result, body: expect.stringMatching(/^begin x+\n\[cut: /) as string }, ack])
  })

  test('once the run is ending no turn begins and none is concluded', async () => {
    const ending = new AbortController()
    const said: string[] = []
    const conversation: TurnDeps['conversation'] = {
      turn: () => {
        ending.abort()
        return Promise.resolve(failed)
      },
      idle: () => Promise.resolve(),
      ended: Promise.resolve(),
    }
    const call = (method: string): Promise<unknown> => {
      said.push(method)
      return Promise.resolve([message])
    }
    const transcript = { add: () => undefined, flush: () => Promise.resolve() }
    const deps = {
      broker: { call },
      log: () => undefined,
      tries: 3,
      retryMs: 0,
      signal: ending.signal,
      conversation,
      transcript,
      now: () => 0,
      setTurn: () => undefined,
    }
    await expect(takeTurns(deps)).rejects.toThrow(/abort/i)
    expect(said).toEqual(['message.receive'])
  })
})
