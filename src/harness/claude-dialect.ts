import type { Dialect, Emit, Frame } from './dialect.ts'
import type { TurnEnded } from './contract.ts'
import { countOf, fieldsOf, listOf, numberOf, textOf } from './frames.ts'
import { createLimitClock, isLimit, type LimitClock } from './limits.ts'
import type { LongLine } from './lines.ts'

/** The name of our tool server in Claude Code, and what it makes of its tools' names. */
export const SERVER = 'mosaic'
const TOOL_PREFIX = `mcp__${SERVER}__`
const MS = 1000

const toolName = (name: string | undefined): string => (name ?? 'unknown').replace(TOOL_PREFIX, '')

/** What one conversation has said so far. */
interface Memory {
  /** Names of tools that were called, by the id of the call. */
  readonly calls: Map<string, string>
  sessionId: string | null
  /** The program announces its own state: a turn ends when it is idle. */
  hasStates: boolean
  result: TurnEnded | null
  /** Epoch milliseconds at which the provider's limit ends, where it said so. */
  resetsAtMs: number | undefined
}

function readAssistant({ calls }: Memory, frame: Frame, emit: Emit): void {
  // the program's own words about an API error come again in `result`; a subagent's words are no answer
  const isAnswer = frame.parent_tool_use_id === null || frame.parent_tool_use_id === undefined
  for (const block of listOf(fieldsOf(frame.message).content)) {
    const text = textOf(block.text)
    if (block.type === 'text' && text !== undefined && isAnswer && frame.is_api_error_message !== true) emit({ event: 'text', text })
    if (block.type !== 'tool_use') continue
    const name = toolName(textOf(block.name))
    calls.set(textOf(block.id) ?? '', name)
    emit({ event: 'tool-call', name, input: block.input })
  }
}

function readToolResults({ calls }: Memory, frame: Frame, emit: Emit): void {
  for (const block of listOf(fieldsOf(frame.message).content)) {
    const id = textOf(block.tool_use_id)
    if (block.type !== 'tool_result' || id === undefined) continue
    emit({ event: 'tool-result', name: calls.get(id) ?? 'unknown', ok: block.is_error !== true })
    calls.delete(id)
  }
}

/** Input of a model is all that it read, from a cache or not. */
function readUsage(frame: Frame, emit: Emit): void {
  const usage = fieldsOf(frame.usage)
  const inputTokens = countOf(usage.input_tokens) + countOf(usage.cache_creation_input_tokens) + countOf(usage.cache_read_input_tokens)
  emit({ event: 'usage', inputTokens, outputTokens: countOf(usage.output_tokens) })
}

const reasonOf = (frame: Frame): string => {
  const result = textOf(frame.result) ?? ''
  return result === '' ? (textOf(frame.subtype) ?? 'no reason given') : result
}

/** Judged by is_error alone: an API failure has the subtype `success`. */
function toTurnEnd(memory: Memory, limits: LimitClock, frame: Frame): TurnEnded {
  const text = textOf(frame.result) ?? ''
  if (frame.is_error !== true) {
    limits.reset()
    return { event: 'turn-ended', ok: true, reason: null, ...(text === '' ? {} : { text }) }
  }
  const failed = { event: 'turn-ended', ok: false, reason: reasonOf(frame) } as const
  return isLimit(numberOf(frame.api_error_status)) ? { ...failed, retryAtMs: limits.retryAt(memory.resetsAtMs) } : failed
}

/** A result whose text is longer than memory allows: its other fields stand around the text. */
function toLongEnd({ head, tail, bytes, path }: LongLine): TurnEnded | null {
  const ends = `${head}\n${tail}`
  if (!ends.includes('"type":"result"')) return null
  const ok = !ends.includes('"is_error":true')
  return { event: 'turn-ended', ok, reason: ok ? null : 'the program failed', text: `[an answer of ${String(bytes)} bytes is in ${path}]` }
}

function readLimit(memory: Memory, frame: Frame): void {
  const { status, resetsAt } = fieldsOf(frame.rate_limit_info)
  const seconds = numberOf(resetsAt)
  memory.resetsAtMs = status === 'rejected' && seconds !== undefined ? seconds * MS : undefined
}

/** The turn is over: with its result, or without one if it was interrupted before its first request. */
function end(memory: Memory, emit: Emit): void {
  const ended = memory.result ?? { event: 'turn-ended', ok: false, reason: 'the turn ended without a result' }
  memory.result = null
  memory.calls.clear()
  emit(ended)
}

/** A program that announces its states ends a turn by being idle; what it still does in between belongs to the turn. */
function finish(memory: Memory, ended: TurnEnded, emit: Emit): void {
  memory.result = ended
  if (!memory.hasStates) end(memory, emit)
}

type Read = (memory: Memory, frame: Frame, emit: Emit) => void

const SYSTEM: Readonly<Record<string, Read>> = {
  init(memory, frame, emit) {
    const id = textOf(frame.session_id)
    if (id === undefined || id === memory.sessionId) return
    memory.sessionId = id
    emit({ event: 'session-id', id })
  },
  api_retry(_memory, frame, emit) {
    emit({ event: 'retry', reason: `${textOf(frame.error) ?? 'unknown'} (${String(numberOf(frame.error_status) ?? 'no answer')})` })
  },
  session_state_changed(memory, frame, emit) {
    memory.hasStates = true
    if (frame.state === 'idle') end(memory, emit)
  },
}

const readerOf = (table: Readonly<Record<string, Read>>, key: unknown): Read | undefined =>
  typeof key === 'string' && Object.hasOwn(table, key) ? table[key] : undefined

/** Claude Code's stream-json, both ways. Lines of unknown types mean nothing. */
export function createClaudeDialect({ onControl }: { readonly onControl: (response: Frame) => void }): Dialect {
  const memory: Memory = { calls: new Map(), sessionId: null, hasStates: false, result: null, resetsAtMs: undefined }
  const limits = createLimitClock()
  const lines: Readonly<Record<string, Read>> = {
    system: (_memory, frame, emit) => readerOf(SYSTEM, frame.subtype)?.(memory, frame, emit),
    assistant: readAssistant,
    user: readToolResults,
    rate_limit_event: readLimit,
    result(_memory, frame, emit) {
      readUsage(frame, emit)
      finish(memory, toTurnEnd(memory, limits, frame), emit)
    },
    control_response: (_memory, frame) => onControl(fieldsOf(frame.response)),
  }
  let interrupts = 0
  return {
    toPrompt: (text) => ({ type: 'user', message: { role: 'user', content: [{ type: 'text', text }] } }),
    toInterrupt: () => ({ type: 'control_request', request_id: `interrupt-${String(++interrupts)}`, request: { subtype: 'interrupt' } }),
    read: (frame, emit) => readerOf(lines, frame.type)?.(memory, frame, emit),
    readLong(line, emit) {
      const ended = toLongEnd(line)
      if (ended !== null) finish(memory, ended, emit)
    },
  }
}
