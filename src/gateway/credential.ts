import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import { AppError } from '../core/errors.ts'
import { Secret } from '../core/secret.ts'
import type { Environment, Placeholder } from '../harness/contract.ts'
import { credentialVariable } from '../harness/provider-credential.ts'

type Variable = Placeholder['variable']

/** A credential of the model provider's, which the bus host alone holds. */
export interface Credential {
  readonly variable: Variable
  readonly secret: Secret
}

interface Kind {
  /** Programs tell the kinds apart by how a value begins, and send other headers with an OAuth token. */
  readonly prefix: string
  readonly toHeaders: (value: string) => Readonly<Record<string, string>>
}

const bearer = (value: string): Readonly<Record<string, string>> => ({ authorization: `Bearer ${value}` })

const KINDS = {
  CLAUDE_CODE_OAUTH_TOKEN: { prefix: 'sk-ant-oat01-', toHeaders: bearer },
  ANTHROPIC_API_KEY: { prefix: 'sk-ant-api03-', toHeaders: (value) => ({ 'x-api-key': value }) },
  ANTHROPIC_AUTH_TOKEN: { prefix: 'mosaic-', toHeaders: bearer },
} as const satisfies Readonly<Record<Variable, Kind>>

const PLACEHOLDER_BYTES = 32
const PRINTABLE = /^[\x21-\x7e]+$/

/**
 * The first that is set of CLAUDE_CODE_OAUTH_TOKEN, ANTHROPIC_API_KEY and, with ANTHROPIC_BASE_URL, ANTHROPIC_AUTH_TOKEN; null when
 * none is. Throws `config-invalid` for a value that no header can carry.
 */
export function findCredential(env: Environment): Credential | null {
  const variable = credentialVariable(env)
  if (variable === null) return null
  const value = (env[variable] ?? '').trim()
  if (!PRINTABLE.test(value)) throw new AppError('config-invalid', `${variable} holds characters that no credential has`)
  return { variable, secret: new Secret(value) }
}

/** What a sandbox holds instead: 32 random bytes, of the same kind, and worth something on the run's own socket alone. */
export const createPlaceholder = ({ variable }: Credential): Placeholder => ({
  variable,
  value: `${KINDS[variable].prefix}${randomBytes(PLACEHOLDER_BYTES).toString('base64url')}`,
})

export const toCredentialHeaders = ({ variable, secret }: Credential): Readonly<Record<string, string>> => KINDS[variable].toHeaders(secret.reveal())

const digest = (text: string): Buffer => createHash('sha256').update(text).digest()

/** Compared in constant time, whatever their lengths. */
export const isSameSecret = (given: string, expected: string): boolean => timingSafeEqual(digest(given), digest(expected))
