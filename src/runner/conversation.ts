import { unreachable } from '../core/errors.ts'
import type { Driver, DriverEvent } from '../harness/contract.ts'
import { RunEnd } from './run-end.ts'
import type { Transcript } from './transcript.ts'

export interface TurnOutcome {
  readonly ok: boolean
  readonly reason: string | null
  /** The turn's answer. */
  readonly text: string
  readonly retryAtMs: number | undefined
}

/** The runner's side of a harness: one turn at a time, everything written down. */
export interface Conversation {
  turn(text: string): Promise<TurnOutcome>
  /** Resolves when no turn is under way. */
  idle(): Promise<void>
  /** Throws RunEnd `harness-failed` when the harness ends by itself; resolves when it was closed. */
  readonly ended: Promise<void>
}

interface Turn {
  readonly texts: string[]
  readonly resolve: (outcome: TurnOutcome) => void
}

const toGone = ({ code, signal }: { code: number | null; signal: string | null }): RunEnd =>
  new RunEnd('harness-failed', `the harness ended by itself: ${signal ?? `exit ${String(code)}`}`)

export function createConversation({ driver, transcript }: { readonly driver: Driver; readonly transcript: Transcript }): Conversation {
  let turn: Turn | undefined
  let idle = Promise.resolve()

  const onEvent = (event: DriverEvent): void => {
    switch (event.event) {
      case 'text':
        return void turn?.texts.push(event.text)
      case 'turn-ended':
        turn?.resolve({ ok: event.ok, reason: event.reason, text: event.text ?? turn.texts.join('\n'), retryAtMs: event.retryAtMs })
        turn = undefined
        return
      case 'exited':
        if (!event.expected) throw toGone(event)
        return
      case 'ready':
      case 'session-id':
      case 'turn-started':
      case 'tool-call':
      case 'tool-result':
      case 'retry':
      case 'usage':
        return
      default:
        return unreachable(event)
    }
  }
  const readAll = async (): Promise<void> => {
    for await (const event of driver.events) {
      transcript.add(event)
      onEvent(event)
    }
  }
  return {
    async turn(text) {
      const outcome = new Promise<TurnOutcome>((resolve) => {
        turn = { texts: [], resolve }
      })
      idle = outcome.then(() => undefined)
      driver.send(text)
      return await outcome
    },
    idle: () => idle,
    ended: readAll(),
  }
}
