import { existsSync, readFileSync } from 'node:fs'
import { release, version } from 'node:os'
import type { MachineFacts } from './remedies.ts'

export function readText(path: string): string | null {
  try {
    return readFileSync(path, 'utf8').trim()
  } catch {
    return null
  }
}

const sysctl = (name: string): string | null => readText(`/proc/sys/${name}`)

/** os-release(5): shell assignments, quoted or not. */
function osRelease(text: string): Record<string, string> {
  const pairs = [...text.matchAll(/^([A-Z_]+)=(?:"([^"\n]*)"|'([^'\n]*)'|(.*))$/gm)]
  return Object.fromEntries(pairs.map(([, name = '', double, single, bare]) => [name, double ?? single ?? bare ?? '']))
}

/** The marks that container managers leave; systemd's is for all of them. */
function containerOf(env: NodeJS.ProcessEnv): string | null {
  if (existsSync('/.dockerenv')) return 'docker'
  if (existsSync('/run/.containerenv')) return 'podman'
  return readText('/run/systemd/container') ?? env.container ?? null
}

export function readMachineFacts(env: NodeJS.ProcessEnv): MachineFacts {
  const os = osRelease(readText('/etc/os-release') ?? readText('/usr/lib/os-release') ?? '')
  return {
    system: os.PRETTY_NAME ?? 'Linux',
    systemId: os.ID ?? '',
    kernel: `${release()} ${version()}`,
    container: containerOf(env),
    userNamespaceClone: sysctl('kernel/unprivileged_userns_clone'),
    maxUserNamespaces: sysctl('user/max_user_namespaces'),
    appArmorRestricts: sysctl('kernel/apparmor_restrict_unprivileged_userns'),
  }
}
