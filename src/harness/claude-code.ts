import type { Environment, Harness, HarnessSettings } from './contract.ts'
import { executableAt, onPath, versionOf } from './locate.ts'

const DEST_DIR = '/opt/mosaic/claude-code'
const isSet = (env: Environment, name: string): boolean => (env[name] ?? '') !== ''

const hasCredential = (env: Environment): boolean =>
  isSet(env, 'CLAUDE_CODE_OAUTH_TOKEN') || isSet(env, 'ANTHROPIC_API_KEY') || (isSet(env, 'ANTHROPIC_AUTH_TOKEN') && isSet(env, 'ANTHROPIC_BASE_URL'))

/** The path that was named for it; undefined when none was, and PATH decides. */
const namedBin = (settings: HarnessSettings, env: Environment): string | undefined =>
  isSet(env, 'MOSAIC_CLAUDE_BIN') ? env.MOSAIC_CLAUDE_BIN : (settings.bin ?? undefined)

export const claudeCode: Harness = {
  name: 'claude-code',
  needsSessionCredential: true,
  needsModelSocket: true,
  stateEntries: ['projects', 'todos'],
  async locate(settings, hostEnv) {
    const named = namedBin(settings, hostEnv)
    const bin = named === undefined ? await onPath('claude', hostEnv) : await executableAt(named)
    if (bin === null) return null
    return { bin, version: await versionOf(bin, hostEnv), programs: [{ source: bin, dest: `${DEST_DIR}/claude` }], pathDirs: [DEST_DIR] }
  },
  whyMissing(settings, hostEnv) {
    const named = namedBin(settings, hostEnv)
    return named === undefined ? 'no claude is on the PATH of the bus host' : `${named} is no program that the bus host can run`
  },
  whyNoCredential: (hostEnv) =>
    hasCredential(hostEnv)
      ? null
      : "the bus host has none of CLAUDE_CODE_OAUTH_TOKEN, ANTHROPIC_API_KEY, ANTHROPIC_AUTH_TOKEN with ANTHROPIC_BASE_URL; the bus unit's EnvironmentFile sets one when the bus starts",
  environment: (session) => ({ CLAUDE_CONFIG_DIR: session.state }),
  configFiles: () => [],
  driver: null,
}
