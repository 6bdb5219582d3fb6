import { AppError } from '../core/errors.ts'

interface Target {
  /** Does an answer say how many tokens it took? */
  readonly billed: boolean
}

/** What a session may ask of the provider, a fixed list: everything else of its API (files, batches, keys) stays out of reach. */
const TARGETS: ReadonlyMap<string, Target> = new Map([
  ['/v1/messages', { billed: true }],
  ['/v1/messages/count_tokens', { billed: false }],
])

/** As the SDKs write it: `?beta=true`. */
const QUERY = /^(\?[A-Za-z0-9_=&.,-]{0,200})?$/

export interface ParsedTarget extends Target {
  readonly path: string
  /** With its `?`; empty when there is none. */
  readonly query: string
}

/** The target of a request in origin form (RFC 9112, 3.2.1), exactly one of the list. Throws `invalid-request`, `not-permitted`. */
export function parseTarget(method: string, target: string): ParsedTarget {
  if (!target.startsWith('/')) throw new AppError('invalid-request', 'a request names a path of this gateway and nothing else')
  const end = target.indexOf('?')
  const path = end === -1 ? target : target.slice(0, end)
  const query = end === -1 ? '' : target.slice(end)
  const found = TARGETS.get(path)
  if (found === undefined || method !== 'POST')
    throw new AppError('not-permitted', 'the gateway passes on POST /v1/messages and POST /v1/messages/count_tokens')
  if (!QUERY.test(query)) throw new AppError('invalid-request', 'a query is at most 200 plain characters')
  return { ...found, path, query }
}
