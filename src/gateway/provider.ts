import * as http from 'node:http'
import * as https from 'node:https'
import type { Socket } from 'node:net'
import { urlToHttpOptions } from 'node:url'
import { AppError } from '../core/errors.ts'
import type { Environment } from '../harness/contract.ts'

const DEFAULT_URL = 'https://api.anthropic.com'

export interface ProviderDeadlines {
  /** Until TCP and TLS are there. */
  readonly connectMs: number
  /** Without a byte in either direction. A plain answer may take minutes to begin. */
  readonly idleMs: number
}

interface ProviderRequest {
  /** Path and query, below the provider's own path. */
  readonly target: string
  readonly headers: http.OutgoingHttpHeaders
  /** Not held on to once it is sent. */
  readonly body: () => Buffer
}

/** The one server that requests are passed on to, fixed when the host starts. */
export interface Provider extends Disposable {
  /** For the Host header. */
  readonly host: string
  /** The answer, as soon as its head is there; a redirect is an answer like any other. Rejects with the system's error, or `timeout`. */
  send(request: ProviderRequest, signal: AbortSignal): Promise<http.IncomingMessage>
}

/** ANTHROPIC_BASE_URL, or Anthropic's own. Throws `config-invalid`. */
export function toProviderUrl(env: Environment): URL {
  const text = (env.ANTHROPIC_BASE_URL ?? '').trim() || DEFAULT_URL
  const refuse = (what: string): never => {
    // the text itself may hold a password
    throw new AppError('config-invalid', `ANTHROPIC_BASE_URL ${what}`, { hint: `set it to a URL like ${DEFAULT_URL}, or unset it` })
  }
  const url = URL.canParse(text) ? new URL(text) : refuse('is no URL')
  if (url.protocol !== 'https:' && url.protocol !== 'http:') refuse('is no http or https URL')
  if (url.username !== '' || url.password !== '') refuse('holds a user or a password')
  if (url.search !== '' || url.hash !== '') refuse('holds a query or a fragment')
  return url
}

function limitConnect(socket: Socket, event: 'connect' | 'secureConnect', connectMs: number): void {
  if (!socket.connecting) return
  const timer = setTimeout(() => socket.destroy(new AppError('timeout', 'the model provider did not accept a connection in time')), connectMs)
  socket.once(event, () => clearTimeout(timer)).once('close', () => clearTimeout(timer))
}

/** Opens the provider's connection pool; nothing is connected before the first request. */
export function createProvider(url: URL, { connectMs, idleMs }: ProviderDeadlines): Provider {
  const { agent, request, connected } =
    url.protocol === 'https:'
      ? ({ agent: new https.Agent({ keepAlive: true }), request: https.request, connected: 'secureConnect' } as const)
      : ({ agent: new http.Agent({ keepAlive: true }), request: http.request, connected: 'connect' } as const)
  const base = url.pathname.replace(/\/+$/, '')
  return {
    host: url.host,
    // a request that a kept connection loses is not sent again: it may have been read, and paid for (RFC 9110, 9.2.2)
    send: ({ target, headers, body }, signal) =>
      new Promise((resolve, reject) => {
        const sent = request({ ...urlToHttpOptions(url), path: `${base}${target}`, method: 'POST', headers, agent, signal })
        sent.on('socket', (socket) => limitConnect(socket, connected, connectMs))
        sent.setTimeout(idleMs, () => sent.destroy(new AppError('timeout', 'the model provider was silent for too long')))
        sent.on('response', resolve)
        sent.on('error', reject)
        sent.end(body())
      }),
    [Symbol.dispose]: () => agent.destroy(),
  }
}
