import { dirname } from 'node:path'
import type { Harness } from './contract.ts'
import { executableAt, onPath, versionOf } from './locate.ts'

const DEST_DIR = '/opt/mosaic/pi'
const PACKAGE_ROOT = /^(.*\/node_modules)\/(?:@[^/]+\/)?[^/]+\//

/** pi is a package of JavaScript: what it loads lies in the `node_modules` directory around it, which must keep that name inside. */
function programsOf(bin: string): { source: string; dest: string }[] {
  const modules = PACKAGE_ROOT.exec(bin)?.[1]
  return [{ source: modules ?? dirname(bin), dest: `${DEST_DIR}/${modules === undefined ? 'bin' : 'node_modules'}` }]
}

export const pi: Harness = {
  name: 'pi',
  needsSessionCredential: false,
  needsModelSocket: true,
  stateEntries: ['sessions'],
  async locate(settings, hostEnv) {
    const bin = settings.bin === null ? await onPath('pi', hostEnv) : await executableAt(settings.bin)
    return bin === null ? null : { bin, version: await versionOf(bin, hostEnv), programs: programsOf(bin), pathDirs: [] }
  },
  whyMissing: (settings) => (settings.bin === null ? 'no pi is on the PATH of the bus host' : `${settings.bin} is no program that the bus host can run`),
  whyNoCredential: () => null,
  environment: () => ({}),
  configFiles: () => [],
  driver: null,
}
