import type { ServerResponse } from 'node:http'
import { CODES, type ErrorCode } from '../core/codes.ts'
import { AppError, codeOf } from '../core/errors.ts'

interface HttpRefusal {
  readonly status: number
  /** The provider's own word for it, which programs know. */
  readonly type: string
}

const INTERNAL: HttpRefusal = { status: 500, type: 'api_error' }

/** Statuses by which programs decide whether to try again: 429 and 5xx they do, others not. */
const REFUSALS: Partial<Record<ErrorCode, HttpRefusal>> = {
  'invalid-request': { status: 400, type: 'invalid_request_error' },
  unauthenticated: { status: 401, type: 'authentication_error' },
  'no-session-credential': { status: 403, type: 'permission_error' },
  'model-not-allowed': { status: 403, type: 'permission_error' },
  'not-permitted': { status: 404, type: 'not_found_error' },
  'body-too-big': { status: 413, type: 'request_too_large' },
  'too-many-requests': { status: 429, type: 'rate_limit_error' },
  'provider-unreachable': { status: 502, type: 'api_error' },
  timeout: { status: 504, type: 'api_error' },
}

/** Answers a request that is not passed on, as the provider would; one whose answer has begun is broken off. */
export function refuse(response: ServerResponse, error: unknown): void {
  if (response.headersSent || response.destroyed) return void response.destroy()
  const code = codeOf(error)
  const { status, type } = REFUSALS[code] ?? INTERNAL
  const message = `${code}: ${error instanceof AppError ? error.message : CODES[code].text}`
  const text = JSON.stringify({ type: 'error', error: { type, code, message } })
  // what is left of the request is not read: the connection cannot go on
  const close = response.req.complete ? {} : { connection: 'close' }
  const retry = status === 429 ? { 'retry-after': '1' } : {}
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text), ...close, ...retry })
  response.end(text)
}
