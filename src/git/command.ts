/** How a git process may reach other repositories: not at all, or by a path of this machine. */
export type Transport = 'none' | 'file'

export interface GitSettings {
  /** An own empty read-only file: git is never given a device path, and never the configuration of a person. */
  readonly globalConfig: string
  /** The repositories that this process may open although their owner looks foreign in a user namespace. */
  readonly safeDirectories: readonly string[]
  readonly transport?: Transport
  /** GIT_DIR; without it git looks from its working directory. */
  readonly gitDir?: string
  /** Where new objects go, and where else objects are looked for. */
  readonly objects?: string
  readonly alternates?: readonly string[]
  /** Further configuration, as name and value. */
  readonly config?: readonly (readonly [string, string])[]
}

const CONFIG: readonly (readonly [string, string])[] = [
  ['core.hooksPath', '/dev/null'],
  ['core.fsmonitor', 'false'],
  ['core.untrackedCache', 'false'],
  ['core.pager', 'cat'],
  ['core.sshCommand', 'false'],
  ['core.fsync', 'committed,reference'],
  ['credential.helper', ''],
  ['protocol.allow', 'never'],
  ['submodule.recurse', 'false'],
  ['fetch.recurseSubmodules', 'false'],
  ['gc.auto', '0'],
  ['maintenance.auto', 'false'],
  ['advice.detachedHead', 'false'],
]

const ENVIRONMENT: Readonly<Record<string, string>> = {
  PATH: '/usr/local/bin:/usr/bin:/bin',
  HOME: '/nonexistent',
  LC_ALL: 'C',
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_ATTR_NOSYSTEM: '1',
  GIT_TERMINAL_PROMPT: '0',
  GIT_ASKPASS: 'false',
  SSH_ASKPASS: 'false',
  GIT_EDITOR: 'false',
  GIT_PAGER: 'cat',
  GIT_NO_REPLACE_OBJECTS: '1',
  GIT_GRAFT_FILE: '/nonexistent/grafts',
  GIT_OPTIONAL_LOCKS: '0',
  GIT_FLUSH: '0',
  GIT_COMMITTER_NAME: 'mosaic',
  GIT_COMMITTER_EMAIL: 'mosaic@localhost',
  GIT_AUTHOR_NAME: 'mosaic',
  GIT_AUTHOR_EMAIL: 'mosaic@localhost',
}

/** Configuration as environment (git-config(1), GIT_CONFIG_COUNT): it binds a script's git commands as it binds a single one. */
function toConfigEnvironment(pairs: readonly (readonly [string, string])[]): Record<string, string> {
  const numbered = pairs.flatMap(([name, value], n) => [
    [`GIT_CONFIG_KEY_${String(n)}`, name],
    [`GIT_CONFIG_VALUE_${String(n)}`, value],
  ])
  return { GIT_CONFIG_COUNT: String(pairs.length), ...(Object.fromEntries(numbered) as Record<string, string>) }
}

/**
 * The whole environment of a git process of ours; nothing is inherited. `GIT_ALLOW_PROTOCOL` stands beside `protocol.allow`
 * because a repository's own `protocol.ext.allow` is more specific than the latter and would win.
 */
export function gitEnvironment(settings: GitSettings): Record<string, string> {
  const { transport = 'none', config = [], safeDirectories, globalConfig, gitDir, objects, alternates = [] } = settings
  const safe = safeDirectories.map((path) => ['safe.directory', path] as const)
  const file = transport === 'file' ? [['protocol.file.allow', 'always'] as const] : []
  return {
    ...ENVIRONMENT,
    ...toConfigEnvironment([...CONFIG, ...file, ...safe, ...config]),
    GIT_CONFIG_GLOBAL: globalConfig,
    GIT_ALLOW_PROTOCOL: transport,
    ...(gitDir === undefined ? {} : { GIT_DIR: gitDir }),
    ...(objects === undefined ? {} : { GIT_OBJECT_DIRECTORY: objects }),
    ...(alternates.length === 0 ? {} : { GIT_ALTERNATE_OBJECT_DIRECTORIES: alternates.join(':') }),
  }
}

/** One git process: its arguments and its environment. Values that come from elsewhere stand behind `--end-of-options`, or on standard input. */
export function gitCommand(settings: GitSettings, args: readonly string[]): { readonly command: readonly string[]; readonly env: Record<string, string> } {
  return { command: ['git', '--no-pager', ...args], env: gitEnvironment(settings) }
}
