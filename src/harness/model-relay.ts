import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type IncomingMessage, request as forward, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { isLimit } from './limits.ts'

const MS = 1000

/** The model socket on the loopback, for a program that cannot use a Unix socket. */
export interface ModelRelay extends AsyncDisposable {
  readonly url: string
}

interface RelayDeps {
  readonly socketPath: string
  /** Called when the provider takes no requests for now: until when (epoch milliseconds), where it said so. */
  readonly onLimit: (resetsAtMs: number | undefined) => void
  readonly now?: () => number
}

const headerOf = (headers: IncomingHttpHeaders, name: string): string | undefined => {
  const value = headers[name]
  return typeof value === 'string' ? value : value?.[0]
}

/** When a limit ends by the headers of its answer: seconds or a date in retry-after, else the provider's own epoch. */
export function resetsAt(headers: IncomingHttpHeaders, nowMs: number): number | undefined {
  const after = headerOf(headers, 'retry-after') ?? ''
  if (/^\d{1,9}$/.test(after)) return nowMs + Number(after) * MS
  const date = Date.parse(after)
  if (!Number.isNaN(date)) return date
  const epoch = Number(headerOf(headers, 'anthropic-ratelimit-unified-reset') ?? '')
  return epoch > 0 ? epoch * MS : undefined
}

function answerBadGateway(response: ServerResponse): void {
  if (response.headersSent) response.destroy()
  else
    response
      .writeHead(502, { 'content-type': 'application/json' })
      .end('{"type":"error","error":{"type":"api_error","message":"the model socket does not answer"}}')
}

function relay({ socketPath, onLimit, now = Date.now }: RelayDeps, incoming: IncomingMessage, response: ServerResponse): void {
  const { method, url, headers } = incoming
  const outgoing = forward({ socketPath, method, path: url, headers }, (answer) => {
    if (isLimit(answer.statusCode)) onLimit(resetsAt(answer.headers, now()))
    response.writeHead(answer.statusCode ?? 502, answer.headers)
    answer.on('error', () => response.destroy())
    answer.pipe(response)
  })
  outgoing.on('error', () => answerBadGateway(response))
  incoming.on('error', () => outgoing.destroy())
  response.on('error', () => outgoing.destroy())
  response.on('close', () => outgoing.destroy())
  incoming.pipe(outgoing)
}

/** Listens on a free port of 127.0.0.1, which in a sandbox without network is its own. */
export async function openModelRelay(deps: RelayDeps): Promise<ModelRelay> {
  const server = createServer((incoming, response) => relay(deps, incoming, response))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${String((server.address() as AddressInfo).port)}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
