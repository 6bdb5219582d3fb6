interface ScrubInput {
  readonly home: string
  /** Values of variables that are called like secrets are secrets. */
  readonly envs: readonly NodeJS.ProcessEnv[]
  /** Values known to be secret, whatever they are called. */
  readonly secrets: readonly string[]
}

const SECRET_NAME = /token|secret|passw|passphrase|credential|private|api_?key|_key$|auth|cookie|session/i
/** Shorter values would black out ordinary words. */
const SHORTEST = 6
const HIDDEN = '***'

/** What looks like a secret wherever it stands. */
const SHAPES: readonly (readonly [pattern: RegExp, replacement: string])[] = [
  [/\b(sk|pk|rk)-[A-Za-z0-9_-]{8,}/g, HIDDEN],
  [/\b(gh[pousr]|github_pat|glpat|xox[abprs])[-_][A-Za-z0-9_-]{8,}/g, HIDDEN],
  [/\bAKIA[A-Z0-9]{12,}/g, HIDDEN],
  [/\beyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*/g, HIDDEN],
  [/-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(-----END [A-Z ]*PRIVATE KEY-----|$)/g, HIDDEN],
  // a capability of a run
  [/\b[0-9a-f]{64}\b/g, HIDDEN],
  [/\b(Bearer|Basic|Token)\s+[A-Za-z0-9._~+/=-]{8,}/gi, `$1 ${HIDDEN}`],
  [/([a-z][a-z0-9+.-]*:\/\/)[^\s/@]+@/gi, `$1${HIDDEN}@`],
  [/((?:token|secret|password|passwd|api_?key)["']?\s*[=:]\s*["']?)[^\s"',;]{4,}/gi, `$1${HIDDEN}`],
]

const escaped = (text: string): string => JSON.stringify(text).slice(1, -1)

/** As it stands, and as it looks inside JSON (and JSON in JSON, and in that), a URL or base64. */
function spellingsOf(secret: string): string[] {
  const once = escaped(secret)
  const twice = escaped(once)
  return [...new Set([secret, once, twice, escaped(twice), encodeURIComponent(secret), Buffer.from(secret).toString('base64').replace(/=+$/, '')])]
}

function secretsOf({ envs, secrets }: ScrubInput): string[] {
  const named = envs.flatMap((env) => Object.entries(env).flatMap(([name, value]) => (SECRET_NAME.test(name) && value !== undefined ? [value] : [])))
  const lines = [...named, ...secrets].flatMap((value) => [value.trim(), ...value.split('\n').map((line) => line.trim())])
  const all = new Set(lines.filter((value) => value.length >= SHORTEST).flatMap(spellingsOf))
  // the longest first: one secret may begin another
  return [...all].sort((a, b) => b.length - a.length)
}

/** Takes secrets out of all strings of a JSON value, names included, and writes the home directory as `~`. */
export function createScrubber(input: ScrubInput): (value: unknown) => unknown {
  const secrets = secretsOf(input)
  const scrubText = (text: string): string => {
    const known = secrets.reduce((rest, secret) => rest.replaceAll(secret, HIDDEN), text)
    const shaped = SHAPES.reduce((rest, [pattern, replacement]) => rest.replace(pattern, replacement), known)
    return input.home.length > 1 ? shaped.replaceAll(input.home, '~') : shaped
  }
  const scrub = (value: unknown): unknown => {
    if (typeof value === 'string') return scrubText(value)
    if (Array.isArray(value)) return value.map(scrub)
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(Object.entries(value).map(([name, inner]) => [scrubText(name), scrub(inner)]))
  }
  return scrub
}
