const SHORTEST_SECRET = 4

/** A copy of `text` without any of the secrets. */
export type Redact = (text: string) => string

/** Longest first, so that a secret that contains another goes whole. Values too short to be secrets are left alone. */
export function createRedact(secrets: readonly string[]): Redact {
  const known = [...new Set(secrets)].filter((secret) => secret.length >= SHORTEST_SECRET).sort((a, b) => b.length - a.length)
  return (text) => known.reduce((rest, secret) => rest.replaceAll(secret, '***'), text)
}
