const SHORTEST_SECRET = 4
/** A line of a secret of several lines (a key) is one of its own; a shorter one could be anything. */
const SHORTEST_LINE = 6

/** A copy of `text` without any of the secrets. */
export type Redact = (text: string) => string

/** Longest first, so that a secret that contains another goes whole. Values too short to be secrets are left alone. */
export function createRedact(secrets: readonly string[]): Redact {
  const lines = secrets.flatMap((secret) => secret.split('\n').map((line) => line.trim())).filter((line) => line.length >= SHORTEST_LINE)
  const known = [...new Set([...secrets, ...lines])].filter((secret) => secret.length >= SHORTEST_SECRET).sort((a, b) => b.length - a.length)
  return (text) => known.reduce((rest, secret) => rest.replaceAll(secret, '***'), text)
}
