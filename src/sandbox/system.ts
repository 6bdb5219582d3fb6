import { lstatSync, readFileSync, readlinkSync, realpathSync } from 'node:fs'
import { delimiter } from 'node:path'
import { ETC_FILES, ROOT_DIRS, SYSTEM_PROGRAMS } from './policy.ts'

/** What of this machine a plan depends on. Cheap to read, so it is read for each launch: an upgrade may change it under a running host. */
export interface SystemView {
  readonly links: readonly { readonly path: string; readonly target: string }[]
  readonly directories: readonly string[]
  readonly etc: readonly { readonly source: string; readonly dest: string }[]
  readonly resolvConf: string
  readonly timeZone: string
  readonly shell: string
  /** The founder's PATH, as far as it is visible inside. */
  readonly pathDirs: readonly string[]
}

function attempt<T>(look: () => T): T | undefined {
  try {
    return look()
  } catch {
    return undefined
  }
}

const isBelow = (path: string, parent: string): boolean => path.startsWith(`${parent}/`)

function rootDirs(): Pick<SystemView, 'links' | 'directories'> {
  const found = ROOT_DIRS.map((path) => ({ path, stat: attempt(() => lstatSync(path)) }))
  const links = found.filter(({ stat }) => stat?.isSymbolicLink() === true).map(({ path }) => ({ path, target: readlinkSync(path) }))
  return { links, directories: found.filter(({ stat }) => stat?.isDirectory() === true).map(({ path }) => path) }
}

function etcFiles(): SystemView['etc'] {
  return ETC_FILES.flatMap((dest) => {
    const source = attempt(() => realpathSync(dest))
    return source === undefined ? [] : [{ source, dest }]
  })
}

export function readSystem(env: Readonly<Record<string, string | undefined>>): SystemView {
  const pathDirs = (env.PATH ?? '')
    .split(delimiter)
    .filter((dir) => isBelow(dir, SYSTEM_PROGRAMS) && attempt(() => isBelow(realpathSync(dir), SYSTEM_PROGRAMS)) === true)
  return {
    ...rootDirs(),
    etc: etcFiles(),
    resolvConf: attempt(() => readFileSync('/etc/resolv.conf', 'utf8')) ?? '',
    timeZone: Intl.DateTimeFormat().resolvedOptions().timeZone,
    shell: attempt(() => realpathSync('/bin/bash')) === undefined ? '/bin/sh' : '/bin/bash',
    pathDirs: [...new Set(pathDirs)],
  }
}
