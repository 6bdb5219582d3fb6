import type { IncomingMessage, ServerResponse } from 'node:http'
import { pipeline } from 'node:stream/promises'
import { toTimestamp, type Clock } from '../core/clock.ts'
import { AppError, errnoOf, messageOf } from '../core/errors.ts'
import type { Log } from '../core/log.ts'
import type { HeldBody } from './body.ts'
import type { Credential } from './credential.ts'
import { toClientHeaders, toUpstreamHeaders } from './headers.ts'
import type { CredentialHealth } from './health.ts'
import { type FamilyLimits, toWaitMs } from './limits.ts'
import type { Provider } from './provider.ts'
import type { ParsedTarget } from './targets.ts'
import { type AnswerUsage, createUsageReader, type UsageReader } from './usage.ts'

export interface ExchangeDeps {
  readonly log: Log
  readonly clock: Clock
  readonly provider: Provider
  readonly limits: FamilyLimits
  readonly health: CredentialHealth
}

export interface Exchange {
  readonly run: string
  readonly family: string
  readonly credential: Credential
  readonly target: ParsedTarget
  /** Released as soon as the answer begins. */
  readonly body: HeldBody
  /** The tokens of the answer, once, when it was answered at all. */
  readonly onUsage: (usage: AnswerUsage) => void
}

const OVERLOADED = 529
const TOO_MANY = 429
const UNAUTHORIZED = 401
const LIMITS = new Set(['rate_limit_error', 'overloaded_error'])

/** Sends the request on. Throws `provider-unreachable` or `timeout`; what the system said goes to the log alone. */
async function send(deps: ExchangeDeps, { run, credential, target, body }: Exchange, request: IncomingMessage, signal: AbortSignal): Promise<IncomingMessage> {
  const { provider, log } = deps
  const headers = toUpstreamHeaders(request, credential, { host: provider.host, bytes: body.length })
  try {
    return await provider.send({ target: `${target.path}${target.query}`, headers, body: body.bytes }, signal)
  } catch (error) {
    if (signal.aborted) throw new AppError('timeout', 'the exchange took too long or its session ended', { cause: error })
    log.warn({ run, why: errnoOf(error) ?? messageOf(error) }, 'model provider unreachable')
    throw error instanceof AppError ? error : new AppError('provider-unreachable', 'the model provider could not be reached', { cause: error })
  } finally {
    body.release()
  }
}

function noteLimit({ limits, log }: ExchangeDeps, { run, family }: Exchange, cause: { readonly waitMs: number; readonly said: number | string }): void {
  const retryAt = toTimestamp(limits.note(family, cause.waitMs))
  log.warn({ run, family, retryAt, said: cause.said }, 'model provider limits a family')
}

/** What a status tells about more than its own request. */
function noteStatus(deps: ExchangeDeps, exchange: Exchange, { statusCode = 0, headers }: IncomingMessage): void {
  const { health, clock, log } = deps
  if (statusCode === TOO_MANY || statusCode === OVERLOADED) {
    noteLimit(deps, exchange, { waitMs: toWaitMs(headers, clock.now()), said: statusCode })
  } else if (statusCode === UNAUTHORIZED) {
    health.refused()
    log.error({ run: exchange.run, variable: exchange.credential.variable }, 'model provider refused the session credential')
  } else if (isSuccess(statusCode)) health.accepted()
}

const isSuccess = (status: number): boolean => status >= 200 && status < 300

/** Throws for an answer that may not reach a session: one that sends it elsewhere, or whose usage could not be read. */
function assertPassable(answer: IncomingMessage): void {
  const { statusCode = 0, headers } = answer
  const encoding = headers['content-encoding'] ?? 'identity'
  const why =
    statusCode >= 300 && statusCode < 400
      ? 'the model provider answered with a redirect, which is not followed'
      : encoding === 'identity'
        ? null
        : 'the model provider answered in an encoding that was not asked for'
  if (why === null) return
  answer.destroy()
  throw new AppError('provider-unreachable', why)
}

function finish(deps: ExchangeDeps, exchange: Exchange, reader: UsageReader | null): void {
  if (reader === null) return
  const failure = reader.failure()
  if (failure !== null && LIMITS.has(failure)) noteLimit(deps, exchange, { waitMs: toWaitMs({}, deps.clock.now()), said: failure })
  exchange.onUsage(reader.result())
}

/**
 * One request and its answer, whose bytes pass as they come; its usage is read on the way. Throws what refuses it while nothing is
 * answered; an answer that breaks off is broken off for the session, too.
 */
export async function passThrough(
  deps: ExchangeDeps,
  exchange: Exchange,
  { request, response }: { request: IncomingMessage; response: ServerResponse },
  signal: AbortSignal,
): Promise<void> {
  const answer = await send(deps, exchange, request, signal)
  noteStatus(deps, exchange, answer)
  assertPassable(answer)
  const { statusCode = 0, headers } = answer
  const reader = exchange.target.billed && isSuccess(statusCode) ? createUsageReader(headers['content-type']) : null
  response.writeHead(statusCode, toClientHeaders(answer))
  response.flushHeaders()
  if (reader !== null) answer.on('data', (chunk: Buffer) => reader.push(chunk))
  try {
    await pipeline(answer, response, { signal })
  } catch (error) {
    deps.log.info({ run: exchange.run, why: errnoOf(error) ?? messageOf(error) }, 'model answer broken off')
  } finally {
    finish(deps, exchange, reader)
  }
}
