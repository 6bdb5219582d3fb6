import type { Environment, Harness, HarnessSettings, Placeholder } from './contract.ts'
import { CONVERSATION_FILE } from './conversation-file.ts'
import { executableAt, onPath } from './locate.ts'
import { credentialVariable } from './provider-credential.ts'

const DEST_DIR = '/opt/mosaic/claude-code'
const INSIDE = `${DEST_DIR}/claude`
const isSet = (env: Environment, name: string): boolean => (env[name] ?? '') !== ''

/** The path that was named for it; undefined when none was, and PATH decides. */
const namedBin = (settings: HarnessSettings, env: Environment): string | undefined =>
  isSet(env, 'MOSAIC_CLAUDE_BIN') ? env.MOSAIC_CLAUDE_BIN : (settings.bin ?? undefined)

/** No network but the model socket; every request is for the session's own model; no update, no look-up, few retries. */
const environment = (state: string, model: string, modelSocket: string | null, placeholder: Placeholder | null): Readonly<Record<string, string>> => ({
  MOSAIC_HARNESS: INSIDE,
  CLAUDE_CONFIG_DIR: state,
  ...(modelSocket === null ? {} : { ANTHROPIC_UNIX_SOCKET: modelSocket }),
  ANTHROPIC_BASE_URL: 'http://localhost',
  ANTHROPIC_DEFAULT_HAIKU_MODEL: model,
  CLAUDE_CODE_SUBAGENT_MODEL: model,
  CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
  CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS: '1',
  CLAUDE_CODE_MAX_RETRIES: '2',
  DISABLE_AUTOUPDATER: '1',
  // our few tools are listed from the first request on, not found by a search
  ENABLE_TOOL_SEARCH: 'false',
  ...(placeholder === null ? {} : { [placeholder.variable]: placeholder.value }),
})

/** Anthropic's Claude Code: one native file, its conversation in `state/`. */
export const claudeCode: Harness = {
  name: 'claude-code',
  spoken: 'stream-json, tools over MCP',
  needsSessionCredential: true,
  needsModelSocket: true,
  stateEntries: ['projects', 'todos', CONVERSATION_FILE],
  async locate(settings, hostEnv, versionOf) {
    const named = namedBin(settings, hostEnv)
    const bin = named === undefined ? await onPath('claude', hostEnv) : await executableAt(named)
    if (bin === null) return null
    return { bin, inside: INSIDE, version: await versionOf(bin, hostEnv), programs: [{ source: bin, dest: INSIDE }], pathDirs: [DEST_DIR] }
  },
  whyMissing(settings, hostEnv) {
    const named = namedBin(settings, hostEnv)
    return named === undefined ? 'no claude is on the PATH of the bus host' : `${named} is no program that the bus host can run`
  },
  whyNoCredential: (hostEnv) =>
    credentialVariable(hostEnv) !== null
      ? null
      : "the bus host has none of CLAUDE_CODE_OAUTH_TOKEN, ANTHROPIC_API_KEY, ANTHROPIC_AUTH_TOKEN with ANTHROPIC_BASE_URL; the bus unit's EnvironmentFile sets one when the bus starts",
  environment: ({ state, model, modelSocket }, { placeholder }) => environment(state, model, modelSocket, placeholder),
  // settings of an earlier run are gone by then: these are all that the program has
  configFiles: () => [{ in: 'state', path: 'settings.json', text: '{}\n' }],
  bundled: ['mcp.mjs'],
  driver: async () => (await import('./claude-driver.ts')).startClaudeCode,
}
