import { isObject } from '../core/objects.ts'
import { createEventReader } from './events.ts'

/** Tokens as the provider counts them: `input` without what was read from or written to its cache. */
export interface Usage {
  readonly inputTokens: number
  readonly outputTokens: number
  readonly cacheReadTokens: number
  readonly cacheWriteTokens: number
}

export interface AnswerUsage extends Usage {
  /** false: the answer broke off before it had said everything, so more was used. */
  readonly complete: boolean
}

/** Reads an answer as it passes, and changes nothing of it. */
export interface UsageReader {
  push(chunk: Buffer): void
  /** What was read until now. */
  result(): AnswerUsage
  /** The provider's error type, when an answer that began well ended with one (`overloaded_error`). */
  failure(): string | null
}

/** A plain answer is held until it is whole, up to this size. */
const JSON_BYTES = 16 * 1024 * 1024
const NOTHING: Usage = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 }

const FIELDS = {
  inputTokens: 'input_tokens',
  outputTokens: 'output_tokens',
  cacheReadTokens: 'cache_read_input_tokens',
  cacheWriteTokens: 'cache_creation_input_tokens',
} as const satisfies Readonly<Record<keyof Usage, string>>

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && Number(value) >= 0

/** Later counts replace earlier ones: they are totals of the whole answer. */
function update(now: Usage, said: unknown): Usage {
  if (!isObject(said)) return now
  const counted = Object.entries(FIELDS).flatMap(([name, field]) => (isCount(said[field]) ? [[name, said[field]] as const] : []))
  return { ...now, ...Object.fromEntries(counted) }
}

function parse(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) ? value : {}
  } catch {
    return {}
  }
}

function createStreamReader(): UsageReader {
  let usage = NOTHING
  let complete = false
  let failure: string | null = null
  const read = (data: string): void => {
    const event = parse(data)
    if (event.type === 'message_start') usage = update(usage, isObject(event.message) ? event.message.usage : undefined)
    else if (event.type === 'message_delta') usage = update(usage, event.usage)
    else if (event.type === 'message_stop') complete = true
    else if (event.type === 'error' && isObject(event.error) && typeof event.error.type === 'string') failure = event.error.type
  }
  return { push: createEventReader(read), result: () => ({ ...usage, complete }), failure: () => failure }
}

function createJsonReader(): UsageReader {
  let chunks: Buffer[] = []
  let bytes = 0
  return {
    push(chunk) {
      bytes += chunk.length
      if (bytes > JSON_BYTES) chunks = []
      else chunks.push(chunk)
    },
    result() {
      const { usage } = parse(Buffer.concat(chunks).toString('utf8'))
      return { ...update(NOTHING, usage), complete: isObject(usage) }
    },
    failure: () => null,
  }
}

/** The reader for an answer of that content type. */
export const createUsageReader = (contentType = ''): UsageReader => (/^text\/event-stream\b/i.test(contentType) ? createStreamReader() : createJsonReader())
