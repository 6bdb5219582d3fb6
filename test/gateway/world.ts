import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { type IncomingMessage, request } from 'node:http'
import { connect, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { openProvider, type ScriptedProvider } from '../../fixtures/gateway/provider.ts'
import { createLog } from '../../src/core/log.ts'
import { createScope } from '../../src/core/scope.ts'
import { type Gateway, type GatewayBounds, type ModelSocket, openGateway } from '../../src/gateway/gateway.ts'
import type { ServedRun, UsageEntry } from '../../src/gateway/session.ts'

export const REAL_KEY = 'sk-ant-api03-the-real-one'
export const MODEL = 'claude-sonnet-5-5'
export const RUN = 'r0123456789ab'
export const MESSAGE = { model: MODEL, max_tokens: 10, messages: [{ role: 'user', content: 'hi' }] }

export const served = (more: Partial<ServedRun> = {}): ServedRun => ({
  run: RUN,
  instance: 'coder',
  role: 'coder',
  task: 't-1',
  family: 'sonnet',
  models: [MODEL],
  ...more,
})

export interface Ask {
  readonly method?: string
  readonly path?: string
  readonly headers?: Readonly<Record<string, string | string[]>>
  readonly body?: unknown
}

export interface Answer {
  readonly status: number
  readonly headers: IncomingMessage['headers']
  readonly text: string
  readonly code: string | undefined
}

/** A gateway before a scripted provider, its clock and its log in the test's hands. */
export interface World extends AsyncDisposable {
  readonly directory: string
  readonly provider: ScriptedProvider
  readonly gateway: Gateway
  readonly socket: ModelSocket
  readonly usage: UsageEntry[]
  /** Everything that was logged. */
  readonly logged: () => string
  /** The wall clock, in epoch milliseconds, and the one that does not jump. */
  readonly time: { nowMs: number; monotonicMs: number }
  /** On both clocks. */
  readonly pass: (ms: number) => void
  /** The head of an answer as soon as it is there. */
  start(ask?: Ask): Promise<IncomingMessage>
  ask(ask?: Ask): Promise<Answer>
  /** A connection to the socket for bytes of the test's own. */
  raw(): Promise<Socket>
  /** What an agent program that obeys the rules sends with a request. */
  readonly auth: Readonly<Record<string, string>>
}

interface Options {
  readonly env?: Readonly<Record<string, string>>
  readonly bounds?: Partial<GatewayBounds>
  readonly run?: Partial<ServedRun>
  /** The path of the provider's URL. */
  readonly path?: string
}

export function send(socketPath: string, { method = 'POST', path = '/v1/messages', headers = {}, body = MESSAGE }: Ask): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const sent = request({ socketPath, method, path, headers, agent: false }, resolve)
    sent.on('error', reject)
    sent.end(typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body))
  })
}

function codeIn(body: string): string | undefined {
  try {
    return (JSON.parse(body) as { error?: { code?: string } }).error?.code
  } catch {
    return undefined
  }
}

export async function openWorld({ env = { ANTHROPIC_API_KEY: REAL_KEY }, bounds = {}, run = {}, path = '' }: Options = {}): Promise<World> {
  const scope = createScope()
  const directory = mkdtempSync('/tmp/mg-')
  scope.defer(() => rmSync(directory, { recursive: true }))
  const provider = scope.use(await openProvider())
  const lines: string[] = []
  const usage: UsageEntry[] = []
  const time = { nowMs: Date.parse('2026-01-31T09:00:00.000Z'), monotonicMs: 1000 }
  const gateway = scope.use(
    openGateway({
      log: createLog({ write: (line: string) => void lines.push(line) }, 'trace'),
      clock: { now: () => time.nowMs, monotonic: () => time.monotonicMs },
      env: { ANTHROPIC_BASE_URL: `${provider.url}${path}`, ...env },
      directory,
      familyOf: (model) => /^claude-(\w+)-/.exec(model)?.[1] ?? null,
      record: (entry) => void usage.push(entry),
      bounds,
    }),
  )
  const socket = await gateway.open(served(run))
  const auth = { 'x-api-key': socket.placeholder?.value ?? '' }
  const start = (ask: Ask = {}): Promise<IncomingMessage> => send(socket.path, { ...ask, headers: { ...auth, ...ask.headers } })
  return {
    directory,
    provider,
    gateway,
    socket,
    usage,
    time,
    pass(ms) {
      time.nowMs += ms
      time.monotonicMs += ms
    },
    auth,
    logged: () => lines.join(''),
    start,
    async ask(ask) {
      const answer = await start(ask)
      const body = await text(answer)
      return { status: answer.statusCode ?? 0, headers: answer.headers, text: body, code: codeIn(body) }
    },
    async raw() {
      const raw = connect(socket.path)
      await once(raw, 'connect')
      scope.defer(() => raw.destroy())
      return raw
    },
    [Symbol.asyncDispose]: () => scope.close(),
  }
}
