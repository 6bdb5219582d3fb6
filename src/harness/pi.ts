import { dirname, relative } from 'node:path'
import type { Harness, Placeholder } from './contract.ts'
import { CONVERSATION_FILE } from './conversation-file.ts'
import { executableAt, onPath } from './locate.ts'

const DEST_DIR = '/opt/mosaic/pi'
const PACKAGE_ROOT = /^(.*\/node_modules)\/(?:@[^/]+\/)?[^/]+\//

/** pi is a package of JavaScript: what it loads lies in the `node_modules` directory around it, which must keep that name inside. */
function placeOf(bin: string): { readonly source: string; readonly dest: string; readonly inside: string } {
  const modules = PACKAGE_ROOT.exec(bin)?.[1]
  const source = modules ?? dirname(bin)
  const dest = `${DEST_DIR}/${modules === undefined ? 'bin' : 'node_modules'}`
  return { source, dest, inside: `${dest}/${relative(source, bin)}` }
}

/** pi knows an OAuth token by another name, and refuses to start without any. */
function toCredential(placeholder: Placeholder | null): Readonly<Record<string, string>> {
  if (placeholder === null) return { ANTHROPIC_API_KEY: 'none' }
  switch (placeholder.variable) {
    case 'CLAUDE_CODE_OAUTH_TOKEN':
      return { ANTHROPIC_OAUTH_TOKEN: placeholder.value }
    case 'ANTHROPIC_API_KEY':
      return { ANTHROPIC_API_KEY: placeholder.value }
    case 'ANTHROPIC_AUTH_TOKEN':
      return { ANTHROPIC_API_KEY: placeholder.value, ANTHROPIC_AUTH_TOKEN: placeholder.value }
  }
}

const SETTINGS = { retry: { enabled: true, maxRetries: 2, baseDelayMs: 500, provider: { maxRetries: 0 } } }

/** pi: JavaScript on the ordinary Node, its model through a relay on the loopback, its conversation in `state/`. */
export const pi: Harness = {
  name: 'pi',
  spoken: 'rpc, tools by an extension',
  needsSessionCredential: false,
  needsModelSocket: true,
  stateEntries: ['sessions', CONVERSATION_FILE],
  async locate(settings, hostEnv, versionOf) {
    const bin = settings.bin === null ? await onPath('pi', hostEnv) : await executableAt(settings.bin)
    if (bin === null) return null
    const { source, dest, inside } = placeOf(bin)
    return { bin, inside, version: await versionOf(bin, hostEnv), programs: [{ source, dest }], pathDirs: [] }
  },
  whyMissing: (settings) => (settings.bin === null ? 'no pi is on the PATH of the bus host' : `${settings.bin} is no program that the bus host can run`),
  whyNoCredential: () => null,
  environment: (_session, { located, placeholder }) => ({
    MOSAIC_HARNESS: located.inside ?? '',
    PI_OFFLINE: '1',
    PI_TELEMETRY: '0',
    PI_SKIP_VERSION_CHECK: '1',
    ...toCredential(placeholder),
  }),
  configFiles: () => [{ in: 'home', path: '.pi/agent/settings.json', text: `${JSON.stringify(SETTINGS, null, 2)}\n` }],
  bundled: ['pi-extension.mjs'],
  driver: async () => (await import('./pi-driver.ts')).startPi,
}
