import { setTimeout as delay } from 'node:timers/promises'
import { CODES, type ErrorCode } from '../core/codes.ts'
import { AppError, messageOf, unreachable } from '../core/errors.ts'
import { toTimestamp } from '../core/clock.ts'
import type { ReceivedMessage } from '../protocol/rows.ts'
import type { Conversation, TurnOutcome } from './conversation.ts'
import { poll, type PollDeps } from './poll.ts'
import type { TurnMarks } from './tools.ts'
import type { Transcript } from './transcript.ts'
import { judgeTurn, type Verdict } from './turn-rules.ts'
import { BODY_BYTES, SHORT_RESULT_BYTES, toBody, toTurnText } from './turn-text.ts'

const RECEIVE_WAIT_MS = 60_000

export interface TurnDeps extends PollDeps {
  readonly conversation: Conversation
  readonly transcript: Transcript
  readonly now: () => number
  /** Tells the tools which turn is under way. */
  readonly setTurn: (turn: TurnMarks | undefined) => void
}

interface Reply {
  readonly class: 'RESULT' | 'NOTE'
  readonly body: string
  readonly failed?: boolean
}

/** One try; null: the host has taken it. */
async function trySend({ broker }: TurnDeps, message: ReceivedMessage, reply: Reply, limitBytes: number): Promise<AppError | null> {
  try {
    await broker.call('message.send', { to: message.from_instance, in_reply_to: message.id, ...reply, body: toBody(reply.body, limitBytes) })
    return null
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    // after a lost connection the first try may have got there
    return error.code === 'not-owed' ? null : error
  }
}

/** Sends it until the host has taken it or refuses it for good. What is owed is tried for as long as the run lives: the next run is given it again. */
async function send(deps: TurnDeps, message: ReceivedMessage, reply: Reply): Promise<void> {
  const { log, tries, retryMs, signal } = deps
  let limitBytes = BODY_BYTES
  let said: ErrorCode | undefined
  for (let attempt = 1; ; attempt++) {
    const refusal = await trySend(deps, message, reply, limitBytes)
    if (refusal === null) return
    if (refusal.code !== said) log(`${reply.class} of message ${message.id} refused: ${refusal.code} (${messageOf(refusal)})`)
    said = refusal.code
    if (!CODES[refusal.code].retry || (reply.class === 'NOTE' && attempt >= tries)) return
    // a short answer is taken from a run, too, that has had all of its hour
    if (refusal.code === 'too-many-records') limitBytes = SHORT_RESULT_BYTES
    await delay(retryMs, undefined, { signal })
  }
}

async function acknowledge({ broker }: Pick<TurnDeps, 'broker'>, { id }: ReceivedMessage): Promise<void> {
  await broker.call('message.ack', { ids: [id] })
}

const toFailure = ({ reason, text }: TurnOutcome): string => [`the turn failed: ${reason ?? 'no reason given'}`, ...(text === '' ? [] : ['', text])].join('\n')

/** The same turn again once the provider takes requests again. */
async function waitUntil({ transcript, now, signal, log }: TurnDeps, epochMs: number): Promise<void> {
  log(`rate limited until ${toTimestamp(epochMs)}`)
  const entry = { event: 'waiting', until: toTimestamp(epochMs) }
  transcript.add(entry)
  await delay(Math.max(0, epochMs - now()), undefined, { signal })
}

async function play(deps: TurnDeps, message: ReceivedMessage, turn: TurnMarks): Promise<TurnOutcome> {
  deps.signal.throwIfAborted()
  const text = toTurnText(message)
  const entry = { event: 'message', message: message.id, from: message.from_instance, class: message.class, text }
  deps.transcript.add(entry)
  deps.setTurn(turn)
  try {
    return await deps.conversation.turn(text)
  } finally {
    deps.setTurn(undefined)
  }
}

/** What the end of a turn means for its message. */
async function conclude(deps: TurnDeps, message: ReceivedMessage, verdict: Exclude<Verdict, 'wait' | 'retry'>, outcome: TurnOutcome): Promise<void> {
  switch (verdict) {
    case 'result':
      await send(deps, message, { class: 'RESULT', body: outcome.text })
      break
    case 'failed-result':
      await send(deps, message, { class: 'RESULT', body: toFailure(outcome), failed: true })
      break
    case 'note':
      if (outcome.text !== '') await send(deps, message, { class: 'NOTE', body: outcome.text })
      break
    case 'ack':
    case 'nothing':
      break
    default:
      unreachable(verdict)
  }
  // always, also after a RESULT: it is our word that the turn is over, which no tool can give
  await acknowledge(deps, message)
}

/** One message: its turn, once more if it failed, then what its end means. */
async function answer(deps: TurnDeps, message: ReceivedMessage): Promise<void> {
  for (let attempt = 1; ;) {
    const turn: TurnMarks = { id: message.id, class: message.class, later: false, answered: false }
    const outcome = await play(deps, message, turn)
    // a turn cut short by the end of the run says nothing: its message is given again
    deps.signal.throwIfAborted()
    await deps.transcript.flush()
    const verdict = judgeTurn({ ...turn, attempt, ok: outcome.ok, limited: outcome.retryAtMs !== undefined })
    if (verdict === 'wait') await waitUntil(deps, outcome.retryAtMs ?? 0)
    else if (verdict === 'retry') {
      attempt++
      deps.log(`turn of message ${message.id} failed: ${outcome.reason ?? 'no reason given'}; once more`)
    } else {
      await conclude(deps, message, verdict, outcome)
      return
    }
  }
}

/** One message at a time, for as long as the run lives. */
export const takeTurns = (deps: TurnDeps): Promise<never> =>
  poll(deps, 'message.receive', { max: 1, waitMs: RECEIVE_WAIT_MS }, async (messages) => {
    for (const message of messages as readonly ReceivedMessage[]) await answer(deps, message)
  })
