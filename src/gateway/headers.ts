import type { IncomingMessage, OutgoingHttpHeaders } from 'node:http'
import { AppError } from '../core/errors.ts'
import { type Credential, isSameSecret, toCredentialHeaders } from './credential.ts'

/** Headers of one connection, not of a message (RFC 9110, 7.6.1), and the framing that each side makes for itself. */
const HOP_BY_HOP = [
  'connection',
  'content-length',
  'expect',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]
/** What would say who asks, in another way than the credential that is put in. */
const IDENTITY = ['authorization', 'cookie', 'forwarded', 'host', 'via', 'x-api-key', 'x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto', 'x-real-ip']
/** Set by the gateway: the body was read as JSON, and the answer is read for its usage. */
const REWRITTEN = ['accept-encoding', 'content-encoding', 'content-type']
const NOT_UP = new Set([...HOP_BY_HOP, ...IDENTITY, ...REWRITTEN])
/** The answer's length stays: its bytes are not changed. */
const NOT_DOWN = new Set([...HOP_BY_HOP.filter((name) => name !== 'content-length'), 'alt-svc', 'set-cookie', 'strict-transport-security'])

/** Every value of every header but those left out, and those that `Connection` names. */
function passOn(message: IncomingMessage, leftOut: ReadonlySet<string>): OutgoingHttpHeaders {
  const named = new Set((message.headers.connection ?? '').split(',').map((name) => name.trim().toLowerCase()))
  const entries = Object.entries(message.headersDistinct).filter(([name]) => !leftOut.has(name) && !named.has(name))
  return Object.fromEntries(entries)
}

/** A request's headers for the provider, the real credential among them. */
export function toUpstreamHeaders(request: IncomingMessage, credential: Credential, { host, bytes }: { host: string; bytes: number }): OutgoingHttpHeaders {
  return {
    ...passOn(request, NOT_UP),
    host,
    'accept-encoding': 'identity',
    'content-type': 'application/json',
    'content-length': bytes,
    ...toCredentialHeaders(credential),
  }
}

/** An answer's headers for the session. */
export const toClientHeaders = (answer: IncomingMessage): OutgoingHttpHeaders => passOn(answer, NOT_DOWN)

const BEARER = /^Bearer +/i

/** Every credential that the request shows must be the run's placeholder. Throws `unauthenticated`. */
export function assertPlaceholder({ headersDistinct }: IncomingMessage, expected: string): void {
  const shown = [...(headersDistinct['x-api-key'] ?? []), ...(headersDistinct.authorization ?? []).map((value) => value.replace(BEARER, ''))]
  const known = shown.filter((value) => isSameSecret(value, expected))
  if (shown.length === 0 || known.length < shown.length) throw new AppError('unauthenticated', "the request does not show this session's placeholder")
}
