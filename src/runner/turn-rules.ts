import type { MessageClass } from '../protocol/common.ts'

const MAX_ATTEMPTS = 2

/** What is known when a turn has ended. */
export interface TurnFacts {
  readonly class: MessageClass
  /** 1 for the first. */
  readonly attempt: number
  readonly ok: boolean
  /** The provider limits us for now. */
  readonly limited: boolean
  /** Did the turn call `answer_later`? */
  readonly later: boolean
  /** Did the turn send a RESULT for its REQUEST itself? */
  readonly answered: boolean
}

/**
 * `wait`: the same turn again when the limit is over · `retry`: once more, now · `result`, `failed-result`: the text is the RESULT,
 * which acknowledges the REQUEST · `note`: the text is a NOTE, the REQUEST stays owed · `ack`: nothing is sent · `nothing`: all is said
 */
export type Verdict = 'wait' | 'retry' | 'result' | 'failed-result' | 'note' | 'ack' | 'nothing'

/** A turn's end is the RESULT of its REQUEST, unless the turn itself said otherwise; a turn of a RESULT or NOTE sends nothing. */
export function judgeTurn(facts: TurnFacts): Verdict {
  if (facts.answered) return 'nothing'
  if (facts.limited) return 'wait'
  if (!facts.ok && facts.attempt < MAX_ATTEMPTS) return 'retry'
  if (facts.class !== 'REQUEST') return 'ack'
  if (!facts.ok) return 'failed-result'
  return facts.later ? 'note' : 'result'
}
