import type { IncomingMessage, ServerResponse } from 'node:http'
import { AppError, codeOf } from '../core/errors.ts'
import type { Log } from '../core/log.ts'
import type { Placeholder } from '../harness/contract.ts'
import { readBody } from './body.ts'
import type { Credential } from './credential.ts'
import { type ExchangeDeps, passThrough } from './exchange.ts'
import { assertPlaceholder } from './headers.ts'
import { modelsOf } from './models.ts'
import type { Pool } from './pool.ts'
import { refuse } from './refusals.ts'
import { parseTarget } from './targets.ts'
import type { AnswerUsage } from './usage.ts'

/** A run that the gateway serves. */
export interface ServedRun {
  readonly run: string
  readonly instance: string
  readonly role: string
  readonly task: string | null
  readonly family: string
  /** The model of its manifest, and those that its harness may use beside it. */
  readonly models: readonly string[]
}

/** The tokens of one request. */
export interface UsageEntry extends AnswerUsage {
  readonly run: string
  readonly instance: string
  readonly role: string
  readonly task: string | null
  readonly family: string
  readonly model: string
}

export interface SessionDeps extends ExchangeDeps {
  readonly log: Log
  /** For bodies, in bytes. */
  readonly memory: Pool
  readonly bodyBytes: number
  readonly exchangeMs: number
  readonly familyOf: (model: string) => string | null
  readonly record: (usage: UsageEntry) => void
}

export interface Access {
  readonly credential: Credential
  readonly placeholder: Placeholder
}

const IN_FLIGHT = 8

/** The model that the request asks for. Throws `model-not-allowed` for one, its tools' included, that the run may not use. */
async function assertModels(body: Buffer, { models }: ServedRun, signal: AbortSignal): Promise<string> {
  const asked = await modelsOf(body, signal)
  const foreign = asked.find((model) => !models.includes(model))
  if (foreign === undefined) return asked[0]
  throw new AppError('model-not-allowed', `this session may use ${models.join(', ')}, and the request names ${JSON.stringify(foreign.slice(0, 100))}`)
}

/** Aborts when the peer is gone before its answer is whole, or after `ms`. */
function boundsOf(response: ServerResponse, ms: number): AbortSignal {
  const bounds = new AbortController()
  const timer = setTimeout(() => bounds.abort(), ms)
  response.once('close', () => {
    clearTimeout(timer)
    if (!response.writableFinished) bounds.abort()
  })
  return bounds.signal
}

interface Pair {
  readonly request: IncomingMessage
  readonly response: ServerResponse
}

interface Session {
  readonly served: ServedRun
  /** null: the host holds no credential. */
  readonly access: Access | null
}

async function serve(deps: SessionDeps, { served, access }: Session, pair: Pair): Promise<void> {
  const { request, response } = pair
  const bounds = boundsOf(response, deps.exchangeMs)
  const target = parseTarget(request.method ?? '', request.url ?? '')
  if (access === null) throw new AppError('no-session-credential', 'the bus host holds no credential for a model provider')
  assertPlaceholder(request, access.placeholder.value)
  if ((request.headers['content-encoding'] ?? 'identity') !== 'identity') throw new AppError('invalid-request', 'the body is compressed')
  const body = await readBody(request, { limitBytes: deps.bodyBytes, memory: deps.memory })
  try {
    const model = await assertModels(body.bytes, served, bounds)
    const { run, instance, role, task } = served
    const family = deps.familyOf(model) ?? served.family
    const onUsage = (usage: AnswerUsage): void => deps.record({ run, instance, role, task, family, model, ...usage })
    await passThrough(deps, { run, family, credential: access.credential, target, body: body.bytes, onUsage }, pair, bounds)
  } finally {
    body.release()
  }
}

export interface SessionHandler {
  readonly onRequest: (request: IncomingMessage, response: ServerResponse) => void
  /** Resolves when nothing is in flight. */
  readonly settled: () => Promise<void>
}

/** Serves every request of one run, at most 8 of them at a time. */
export function createSessionHandler(deps: SessionDeps, session: Session): SessionHandler {
  const inFlight = new Set<Promise<void>>()
  const handle = async (pair: Pair): Promise<void> => {
    const { response } = pair
    try {
      await serve(deps, session, pair)
    } catch (error) {
      if (codeOf(error) === 'internal' && !response.destroyed) deps.log.error({ err: error, run: session.served.run }, 'model request failed')
      refuse(response, error)
    }
  }
  return {
    onRequest(request, response) {
      if (inFlight.size >= IN_FLIGHT) {
        refuse(response, new AppError('too-many-requests', `at most ${String(IN_FLIGHT)} requests of a session are in flight`))
        return
      }
      const handled = handle({ request, response }).finally(() => inFlight.delete(handled))
      inFlight.add(handled)
    },
    async settled() {
      await Promise.all(inFlight)
    },
  }
}
