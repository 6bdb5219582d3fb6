import type { SessionSecrets } from '../protocol/session.ts'
import { RunEnd } from './run-end.ts'

type Credential = SessionSecrets['credentials'][number]

function faultOf({ name, env, value, expires }: Credential, nowMs: number): string | undefined {
  if (value === null || value === '') return `credential ${name} (${env}) is missing`
  if (expires === null) return undefined
  const expiresMs = Date.parse(expires)
  if (Number.isNaN(expiresMs)) return `credential ${name} has no valid expiry: ${expires}`
  return expiresMs <= nowMs ? `credential ${name} has expired on ${expires}` : undefined
}

/** The variables that carry the role's credentials. Throws `founder-credentials`, naming each that is missing or expired. */
export function toCredentialEnv({ credentials }: SessionSecrets, nowMs: number): Record<string, string> {
  const faults = credentials.flatMap((credential) => faultOf(credential, nowMs) ?? [])
  if (faults.length > 0) throw new RunEnd('founder-credentials', faults.join('; '))
  return Object.fromEntries(credentials.map(({ env, value }) => [env, value ?? '']))
}
