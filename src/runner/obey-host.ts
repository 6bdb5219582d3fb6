import type { SessionWord } from '../protocol/bus.ts'
import { poll, type PollDeps } from './poll.ts'
import { RunEnd } from './run-end.ts'

const WORD_WAIT_MS = 60_000

/** Listens for the host's word. A pause is the host's to keep: it gives a paused instance no message. */
export const obeyHost = (deps: PollDeps): Promise<never> =>
  poll(deps, 'session.wait', { waitMs: WORD_WAIT_MS }, (word) => {
    const { end, pause } = word as SessionWord
    if (end !== undefined) throw new RunEnd(end, `the bus host ends this run: ${end}`)
    if (pause !== undefined) deps.log(pause ? 'paused' : 'resumed')
  })
