import type { z } from 'zod'
import { AppError } from '../core/errors.ts'
import type { Log } from '../core/log.ts'
import { BUS_METHODS, type BusMethod, helloSchema, type MessageSend } from '../protocol/bus.ts'
import { type Call, PROTOCOL_VERSION, SHORT_RESULT_BYTES } from '../protocol/common.ts'
import { FRAME_LIMIT } from '../protocol/frame.ts'
import type { CallServer } from '../protocol/serve-calls.ts'
import type { Broker } from './broker.ts'
import type { Connection } from './links.ts'
import { parseParams } from './params.ts'
import type { BusPorts } from './ports.ts'

export interface BusCallsDeps<Peer> extends BusPorts<Peer> {
  readonly broker: Broker
  readonly log: Log
}

const FIRST_FRAME_MS = 10_000
const RECEIVE_MAX = 100

/** Taken from a run, too, that has had all of its hour: there is one a REQUEST, and who asked waits for it. */
const isShortResult = ({ class: kind, body }: MessageSend): boolean => kind === 'RESULT' && Buffer.byteLength(body) <= SHORT_RESULT_BYTES

/** Methods whose every call may make the store write as much as the run pleases; what the others write is bounded by what there is. */
const WRITING: ReadonlySet<BusMethod> = new Set(['role.claim', 'task.create', 'task.assign', 'task.close', 'review.request', 'review.verdict', 'event.record'])

type Answer = (connection: Connection, params: Call['params'], signal: AbortSignal) => unknown

const on =
  <Schema extends z.ZodType>(schema: Schema, answer: (connection: Connection, params: z.infer<Schema>, signal: AbortSignal) => unknown): Answer =>
  (connection, params, signal) =>
    answer(connection, parseParams(schema, params), signal)

/** Who may what is the broker's; here stands only which method is which of its acts. */
function createAnswers<Peer>({ broker, runnerWord, appendTranscript, stopSession }: BusCallsDeps<Peer>): Readonly<Record<BusMethod, Answer>> {
  const { roles, messages, tasks, reviews, records } = broker
  const stop = async ({ principal }: Connection, instance: string): Promise<unknown> => {
    const run = await broker.assertMayStop(principal, instance)
    await stopSession(run)
    return { instance, run }
  }
  const append = async ({ principal }: Connection, entries: Parameters<typeof appendTranscript>[1]): Promise<unknown> => {
    await appendTranscript(principal.run, entries)
    return {}
  }
  return {
    'role.claim': on(BUS_METHODS['role.claim'], ({ principal }) => roles.claim(principal)),
    'role.release': on(BUS_METHODS['role.release'], ({ principal }) => roles.release(principal)),
    agents: on(BUS_METHODS.agents, () => roles.agents()),
    'message.send': on(BUS_METHODS['message.send'], ({ principal }, params) => {
      if (!isShortResult(params)) broker.budget.assertRoom(principal)
      return messages.send(principal, params)
    }),
    'message.receive': on(BUS_METHODS['message.receive'], (connection, { waitMs = 0, max = RECEIVE_MAX }, signal) =>
      broker.receive(connection, { waitMs, max }, signal),
    ),
    'message.ack': on(BUS_METHODS['message.ack'], ({ principal }, { ids }) => messages.ack(principal, ids)),
    'message.owed': on(BUS_METHODS['message.owed'], ({ principal }, params) => messages.owed(principal, params)),
    'session.stop': on(BUS_METHODS['session.stop'], (connection, { instance }) => stop(connection, instance)),
    'session.wait': on(BUS_METHODS['session.wait'], ({ principal }, { waitMs = 0 }, signal) => runnerWord(principal.run, waitMs, signal)),
    'task.create': on(BUS_METHODS['task.create'], ({ principal }, params) => {
      broker.budget.spend(principal.run, 0, Buffer.byteLength(params.body))
      return tasks.create(principal, params)
    }),
    'task.list': on(BUS_METHODS['task.list'], ({ principal }, params) => tasks.list(principal, params)),
    'task.show': on(BUS_METHODS['task.show'], ({ principal }, params) => tasks.show(principal, params)),
    'task.assign': on(BUS_METHODS['task.assign'], ({ principal }, params) => tasks.assign(principal, params)),
    'task.close': on(BUS_METHODS['task.close'], ({ principal }, params) => tasks.close(principal, params)),
    'review.request': on(BUS_METHODS['review.request'], ({ principal }, params) => reviews.request(principal, params)),
    'review.list': on(BUS_METHODS['review.list'], ({ principal }, params) => reviews.list(principal, params)),
    'review.verdict': on(BUS_METHODS['review.verdict'], ({ principal }, params) => reviews.verdict(principal, params)),
    trail: on(BUS_METHODS.trail, ({ principal }, params) => records.trail(principal, params)),
    'event.record': on(BUS_METHODS['event.record'], ({ principal }, params) => records.record(principal, params)),
    'transcript.append': on(BUS_METHODS['transcript.append'], (connection, { entries }) => append(connection, entries)),
  }
}

const isMethod = (answers: object, method: string): method is BusMethod => Object.hasOwn(answers, method)

/** What one connection of the bus socket answers; `peer` is what the host can tell of its other end. */
export function createBusCalls<Peer>(deps: BusCallsDeps<Peer>, peer: Peer): CallServer<Connection> {
  const { broker, log } = deps
  const answers = createAnswers(deps)

  const greet = (call: Call): { session: Connection; result: unknown } => {
    if (call.method !== 'hello') throw new AppError('unauthenticated', '')
    const { cap, protocol } = parseParams(helloSchema, call.params)
    if (protocol !== PROTOCOL_VERSION) throw new AppError('protocol-mismatch', `this host speaks version ${String(PROTOCOL_VERSION)}`)
    const principal = deps.authenticate(cap, peer)
    if (principal === null) throw new AppError('unauthenticated', '')
    const { run, instance, role, business } = principal
    log.info({ run, instance }, 'session said hello')
    return { session: broker.open(principal), result: { protocol: PROTOCOL_VERSION, run, instance, role, business } }
  }
  const answer = (connection: Connection, call: Call, signal: AbortSignal): unknown => {
    if (connection.closed()) throw new AppError('unauthenticated', '')
    if (!isMethod(answers, call.method)) throw new AppError('invalid-request', `there is no method ${JSON.stringify(call.method)}`)
    if (WRITING.has(call.method)) broker.budget.assertRoom(connection.principal)
    return answers[call.method](connection, call.params, signal)
  }
  return {
    frameLimit: FRAME_LIMIT.bus,
    firstFrameMs: FIRST_FRAME_MS,
    log,
    // what is thrown inside of the constructor's function is a rejection
    hello: (call) => new Promise((resolve) => resolve(greet(call))),
    call: answer,
    closed(connection) {
      broker.connectionClosed(connection).catch((error: unknown) => log.debug({ err: error, run: connection.principal.run }, 'connection closed late'))
    },
  }
}
