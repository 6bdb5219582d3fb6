import type { Dialect, Emit, Frame } from './dialect.ts'
import type { TurnEnded } from './contract.ts'
import { countOf, fieldsOf, listOf, textOf } from './frames.ts'
import { isLimit, type LimitClock } from './limits.ts'

const STATE_ID = 'turn'
const STATUS = /^(\d{3})\b/

/** What one turn has said so far. */
interface Memory {
  /** What goes on; the turn is over when nothing does. */
  readonly busy: Set<Activity>
  last: TurnEnded
}

const NOTHING: TurnEnded = { event: 'turn-ended', ok: false, reason: 'the turn ended without an answer' }

export interface PiDialectDeps {
  readonly write: (frame: object) => void
  readonly limits: LimitClock
  /** When the provider's limit ends, as the relay heard it. */
  readonly resetsAtMs: () => number | undefined
  readonly onState: (state: Frame) => void
}

function readUsage(message: Frame, emit: Emit): void {
  const usage = fieldsOf(message.usage)
  const inputTokens = countOf(usage.input) + countOf(usage.cacheRead) + countOf(usage.cacheWrite)
  const outputTokens = countOf(usage.output)
  if (inputTokens + outputTokens > 0) emit({ event: 'usage', inputTokens, outputTokens })
}

const textsOf = (message: Frame): string[] => listOf(message.content).flatMap((block) => (block.type === 'text' ? (textOf(block.text) ?? []) : []))

function toEnd({ limits, resetsAtMs }: PiDialectDeps, message: Frame): TurnEnded {
  if (message.stopReason !== 'error' && message.stopReason !== 'aborted') {
    limits.reset()
    const text = textsOf(message).join('\n')
    return { event: 'turn-ended', ok: true, reason: null, ...(text === '' ? {} : { text }) }
  }
  const reason = textOf(message.errorMessage) ?? 'no reason given'
  const failed = { event: 'turn-ended', ok: false, reason } as const
  return isLimit(Number(STATUS.exec(reason)?.[1])) ? { ...failed, retryAtMs: limits.retryAt(resetsAtMs()) } : failed
}

function readMessage(deps: PiDialectDeps, memory: Memory, message: Frame, emit: Emit): void {
  if (message.role !== 'assistant') return
  for (const text of textsOf(message)) emit({ event: 'text', text })
  readUsage(message, emit)
  memory.last = toEnd(deps, message)
}

type Read = (frame: Frame, emit: Emit) => void
type Activity = 'agent' | 'retry' | 'compaction'

/** When a turn is over. An agent's end is no turn's end, a retry or a compaction may follow: pi is asked what it does. */
function createTurnEnd({ write, onState }: PiDialectDeps, memory: Memory): { readonly over: (what: Activity) => void; readonly readResponse: Read } {
  let asked = 0
  const end = (ended: TurnEnded, emit: Emit): void => {
    memory.last = NOTHING
    memory.busy.clear()
    emit(ended)
  }
  const readState = (frame: Frame, emit: Emit): void => {
    const state = fieldsOf(frame.data)
    onState(state)
    if (frame.id !== STATE_ID || --asked > 0) return
    if (memory.busy.size === 0 && state.isStreaming !== true && state.isCompacting !== true) end(memory.last, emit)
  }
  return {
    over(what) {
      memory.busy.delete(what)
      asked++
      write({ id: STATE_ID, type: 'get_state' })
    },
    readResponse(frame, emit) {
      if (frame.command === 'get_state') readState(frame, emit)
      else if (frame.command === 'prompt' && frame.success === false)
        end({ event: 'turn-ended', ok: false, reason: textOf(frame.error) ?? 'the prompt was refused' }, emit)
    },
  }
}

/** pi's RPC mode, both ways. Lines of unknown types mean nothing. */
export function createPiDialect(deps: PiDialectDeps): Dialect {
  const memory: Memory = { busy: new Set(), last: NOTHING }
  const { over, readResponse } = createTurnEnd(deps, memory)
  const begin = (what: Activity): void => void memory.busy.add(what)
  const lines: Readonly<Record<string, Read>> = {
    response: readResponse,
    agent_start() {
      memory.busy.delete('retry')
      begin('agent')
    },
    agent_end: () => over('agent'),
    auto_retry_start(frame, emit) {
      emit({ event: 'retry', reason: textOf(frame.errorMessage) ?? 'no reason given' })
      begin('retry')
    },
    auto_retry_end: () => over('retry'),
    compaction_start: () => begin('compaction'),
    compaction_end: () => over('compaction'),
    message_end: (frame, emit) => readMessage(deps, memory, fieldsOf(frame.message), emit),
    tool_execution_start: (frame, emit) => emit({ event: 'tool-call', name: textOf(frame.toolName) ?? 'unknown', input: frame.args }),
    tool_execution_end: (frame, emit) => emit({ event: 'tool-result', name: textOf(frame.toolName) ?? 'unknown', ok: frame.isError !== true }),
  }
  return {
    // every piece of an answer repeats all of it
    ignored: '{"type":"message_update"',
    toPrompt: (message) => ({ id: 'prompt', type: 'prompt', message }),
    toInterrupt: () => ({ type: 'abort' }),
    read(frame, emit) {
      const { type } = frame
      if (typeof type === 'string' && Object.hasOwn(lines, type)) lines[type]?.(frame, emit)
    },
    readLong({ head, bytes, path }) {
      if (head.startsWith('{"type":"agent_end"')) over('agent')
      if (!head.startsWith('{"type":"message_end"') || !head.includes('"role":"assistant"')) return
      memory.last = { event: 'turn-ended', ok: true, reason: null, text: `[an answer of ${String(bytes)} bytes is in ${path}]` }
    },
  }
}
