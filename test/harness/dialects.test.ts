import { describe, expect, test } from 'vitest'
import type { Dialect, Frame } from '../../src/harness/dialect.ts'
import { createClaudeDialect } from '../../src/harness/claude-dialect.ts'
import type { DriverEvent } from '../../src/harness/contract.ts'
import { createLimitClock } from '../../src/harness/limits.ts'
import { createPiDialect } from '../../src/harness/pi-dialect.ts'

function reading(dialect: Dialect): (...frames: Frame[]) => DriverEvent[] {
  return (...frames) => {
    const events: DriverEvent[] = []
    for (const frame of frames) dialect.read(frame, (event) => events.push(event))
    return events
  }
}

const state = (name: string): Frame => ({ type: 'system', subtype: 'session_state_changed', state: name })
const result = (more: object = {}): Frame => ({
  type: 'result',
  subtype: 'success',
  is_error: false,
  result: 'done',
  usage: { input_tokens: 1, cache_read_input_tokens: 2, output_tokens: 3 },
  ...more,
})
const claude = (): Dialect => createClaudeDialect({ onControl: () => undefined })
const USAGE = { event: 'usage', inputTokens: 3, outputTokens: 3 }
const DONE = { event: 'turn-ended', ok: true, reason: null, text: 'done' }

describe("Claude Code's lines", () => {
  test('unknown types, and known ones of another shape, mean nothing', () => {
    const read = reading(claude())
    expect(read({ type: 'tool_progress' }, { type: 'constructor' }, { type: 7 }, {}, { type: 'system', subtype: 'toString' })).toEqual([])
    expect(read({ type: 'assistant' }, { type: 'assistant', message: { content: 'text' } }, { type: 'user', message: { content: [null, 1] } })).toEqual([])
    expect(read({ type: 'rate_limit_event' }, { type: 'control_response' }, { type: 'system', subtype: 'init' })).toEqual([])
  })

  test('a turn ends when it is idle, with the last result; without states, with the result', () => {
    const read = reading(claude())
    expect(read(result())).toEqual([USAGE, DONE])
    expect(read(state('running'), result({ result: 'first' }), state('running'), result())).toEqual([USAGE, USAGE])
    expect(read(state('idle'))).toEqual([DONE])
    expect(read(state('idle'))).toMatchObject([{ event: 'turn-ended', ok: false }])
  })

  test('is_error decides, not the subtype; 429 and 529 are limits', () => {
    const read = reading(claude())
    const failed = result({ is_error: true, api_error_status: 500, result: 'API Error: 500' })
    expect(read(failed)[1]).toEqual({ event: 'turn-ended', ok: false, reason: 'API Error: 500' })
    expect(read(result({ is_error: true, result: undefined, subtype: 'error_during_execution' }))[1]).toMatchObject({ reason: 'error_during_execution' })
    const resetsAt = Math.ceil(Date.now() / 1000) + 1800
    read({ type: 'rate_limit_event', rate_limit_info: { status: 'rejected', resetsAt } })
    expect(read(result({ is_error: true, api_error_status: 529 }))[1]).toMatchObject({ retryAtMs: resetsAt * 1000 })
  })

  test("a subagent's words are no answer, its tool calls are seen", () => {
    const content = [
      { type: 'text', text: 'aside' },
      { type: 'tool_use', id: 't', name: 'mcp__mosaic__send', input: {} },
    ]
    expect(reading(claude())({ type: 'assistant', parent_tool_use_id: 'x', message: { content } })).toEqual([{ event: 'tool-call', name: 'send', input: {} }])
    expect(reading(claude())({ type: 'assistant', parent_tool_use_id: null, message: { content } })).toHaveLength(2)
  })

  test('a result too long for memory still ends its turn as it says', () => {
    for (const [isError, ok] of [
      ['true', false],
      ['false', true],
    ] as const) {
      const events: DriverEvent[] = []
      const line = { head: '{"usage":{},"result":"xxx', tail: `xxx","is_error":${isError},"type":"result"}`, bytes: 70_000_000, path: '/h/line-1' }
      claude().readLong(line, (event) => events.push(event))
      expect(events).toMatchObject([{ event: 'turn-ended', ok, text: '[an answer of 70000000 bytes is in /h/line-1]' }])
    }
  })
})

describe("pi's lines", () => {
  const open = (resetsAtMs?: number): { read: (...frames: Frame[]) => DriverEvent[]; written: object[] } => {
    const written: object[] = []
    const deps = { write: (frame: object) => void written.push(frame), limits: createLimitClock(), resetsAtMs: () => resetsAtMs, onState: () => undefined }
    return { read: reading(createPiDialect(deps)), written }
  }
  const idle: Frame = { type: 'response', command: 'get_state', id: 'turn', success: true, data: { isStreaming: false, isCompacting: false } }
  const answer = (more: object): Frame => ({
    type: 'message_end',
    message: { role: 'assistant', content: [{ type: 'text', text: 'done' }], stopReason: 'stop', usage: { input: 1, cacheRead: 2, output: 3 }, ...more },
  })
  const failure = answer({ content: [], usage: {}, stopReason: 'error', errorMessage: '429 {"type":"error"}' })

  test('unknown types, and known ones of another shape, mean nothing', () => {
    expect(open().read({ type: 'queue_update' }, { type: 'constructor' }, { type: 7 }, {}, { type: 'message_end' }, { type: 'response' })).toEqual([])
  })

  test('a turn ends when pi says that it does nothing any more', () => {
    const { read, written } = open()
    expect(read({ type: 'agent_start' }, answer({}), { type: 'agent_end' })).toEqual([{ event: 'text', text: 'done' }, USAGE])
    expect(written).toEqual([{ id: 'turn', type: 'get_state' }])
    expect(read(idle)).toEqual([DONE])
  })

  test('a retry or a compaction after the end of an agent belongs to the turn', () => {
    const { read } = open()
    expect(read({ type: 'agent_start' }, failure, { type: 'agent_end' }, { type: 'auto_retry_start', errorMessage: '429' }, idle)).toEqual([
      { event: 'retry', reason: '429' },
    ])
    expect(read({ type: 'agent_start' }, answer({}), { type: 'auto_retry_end' }, { type: 'agent_end' }, { type: 'compaction_start' }, idle, idle)).toEqual([
      { event: 'text', text: 'done' },
      USAGE,
    ])
    expect(read({ type: 'compaction_end' }, idle)).toEqual([DONE])
  })

  test('a limit ends when its relay heard so', () => {
    const at = Date.now() + 1_800_000
    expect(open(at).read({ type: 'agent_start' }, failure, { type: 'agent_end' }, idle)).toMatchObject([{ event: 'turn-ended', ok: false, retryAtMs: at }])
  })

  test('a prompt that is refused is a failed turn', () => {
    expect(open().read({ type: 'response', command: 'prompt', success: false, error: 'no model' })).toEqual([
      { event: 'turn-ended', ok: false, reason: 'no model' },
    ])
  })
})

test('a limit without an end is asked about later and later, until the provider answers', () => {
  let now = 0
  const limits = createLimitClock(() => now)
  expect([1, 2, 3, 4, 5, 6].map(() => limits.retryAt(undefined) / 60_000)).toEqual([1, 2, 4, 8, 15, 15])
  limits.reset()
  now = 1000
  expect([limits.retryAt(undefined), limits.retryAt(5000), limits.retryAt(999)]).toEqual([61_000, 5000, 121_000])
})
