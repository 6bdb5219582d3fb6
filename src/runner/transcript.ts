import { messageOf } from '../core/errors.ts'
import type { Redact } from './redact.ts'

/** Each of them can take six bytes in JSON; a frame has 512 KiB. */
const PIECE_CHARACTERS = 32 * 1024
const BATCH_BYTES = 256 * 1024
const BATCH_ENTRIES = 200
const QUEUE_BYTES = 64 * 1024 * 1024

/** Any further fields are written down as they are. */
interface Entry {
  readonly event: string
}

interface TranscriptDeps {
  readonly append: (entries: readonly Entry[]) => Promise<unknown>
  readonly redact: Redact
  readonly log: (line: string) => void
}

/** What the session said and did, as the host writes it down. */
export interface Transcript {
  add(entry: Entry): void
  /** Resolves when the host has all that was added, or cannot be given it. */
  flush(): Promise<void>
}

/** Pieces of at most PIECE_CHARACTERS that never split a surrogate pair. */
function split(text: string): string[] {
  const pieces: string[] = []
  for (let at = 0; at < text.length || pieces.length === 0;) {
    let end = at + PIECE_CHARACTERS
    const last = text.charCodeAt(end - 1)
    if (end < text.length && last >= 0xd800 && last <= 0xdbff) end--
    pieces.push(text.slice(at, end))
    at = end
  }
  return pieces
}

/** Flat: objects as their JSON, so that a frame nests no deeper than it may. */
function toFields(entry: Entry, redact: Redact): Readonly<Record<string, unknown>> {
  const flat = (value: unknown): unknown => (typeof value === 'object' && value !== null ? JSON.stringify(value) : value)
  return Object.fromEntries(
    Object.entries(entry).map(([name, value]) => {
      const field = flat(value)
      return [name, typeof field === 'string' ? redact(field) : field]
    }),
  )
}

/** One entry, or several that share all but their text; what is long in another field is cut. */
function toEntries(entry: Entry, redact: Redact): Entry[] {
  const { text, ...rest } = toFields(entry, redact)
  const short = Object.entries(rest).map(([name, value]) => [name, typeof value === 'string' ? split(value)[0] : value] as const)
  const base = { ...Object.fromEntries(short), event: entry.event }
  return typeof text === 'string' ? split(text).map((piece) => ({ ...base, text: piece })) : [base]
}

interface Queued {
  readonly entry: Entry
  readonly bytes: number
}

function takeBatch(queue: Queued[]): Queued[] {
  const batch: Queued[] = []
  let bytes = 0
  while (queue[0] !== undefined && batch.length < BATCH_ENTRIES && (bytes === 0 || bytes + queue[0].bytes <= BATCH_BYTES)) {
    bytes += queue[0].bytes
    batch.push(...queue.splice(0, 1))
  }
  return batch
}

export function createTranscript({ append, redact, log }: TranscriptDeps): Transcript {
  const queue: Queued[] = []
  let queuedBytes = 0
  let lost = 0
  let sending = Promise.resolve()

  const sendAll = async (): Promise<void> => {
    while (queue.length > 0) {
      const batch = takeBatch(queue)
      for (const { bytes } of batch) queuedBytes -= bytes
      try {
        await append(batch.map(({ entry }) => entry))
      } catch (error) {
        if (lost === 0) log(`the transcript has gaps: ${messageOf(error)}`)
        lost += batch.length
      }
    }
  }
  const enqueue = (entry: Entry): void => {
    const bytes = Buffer.byteLength(JSON.stringify(entry))
    if (queuedBytes + bytes > QUEUE_BYTES) {
      if (lost++ === 0) log('the transcript has gaps: the host does not take it fast enough')
      return
    }
    queue.push({ entry, bytes })
    queuedBytes += bytes
  }
  return {
    add(entry) {
      for (const each of toEntries(entry, redact)) enqueue(each)
      // one behind the other: what is added at the very end of a sending has its own
      sending = sending.then(sendAll)
    },
    flush: () => sending,
  }
}
