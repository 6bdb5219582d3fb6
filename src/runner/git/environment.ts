/** What the clone's own configuration, which the agent writes, may not decide for a git that the runner starts. */
const CONFIG: readonly (readonly [string, string])[] = [
  ['core.hooksPath', '/dev/null'],
  ['core.fsmonitor', 'false'],
  ['core.pager', 'cat'],
  ['core.sshCommand', 'false'],
  ['credential.helper', ''],
  ['protocol.allow', 'never'],
  ['gc.auto', '0'],
  ['maintenance.auto', 'false'],
]

/**
 * The whole environment of a git that the runner itself starts in a clone; nothing is inherited. It only reads and writes objects
 * and refs, asks nobody, and reaches no other repository. HOME leads nowhere, so there is no configuration of a user.
 */
export function toToolEnvironment(clone: string): Record<string, string> {
  const pairs = [...CONFIG, ['safe.directory', clone] as const]
  const numbered = pairs.flatMap(([name, value], n) => [
    [`GIT_CONFIG_KEY_${String(n)}`, name],
    [`GIT_CONFIG_VALUE_${String(n)}`, value],
  ])
  return {
    PATH: '/usr/local/bin:/usr/bin:/bin',
    HOME: '/nonexistent',
    LC_ALL: 'C',
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_ATTR_NOSYSTEM: '1',
    GIT_TERMINAL_PROMPT: '0',
    GIT_ALLOW_PROTOCOL: 'none',
    GIT_NO_REPLACE_OBJECTS: '1',
    GIT_GRAFT_FILE: '/nonexistent/grafts',
    GIT_CONFIG_COUNT: String(pairs.length),
    ...(Object.fromEntries(numbered) as Record<string, string>),
  }
}

/** Which repository it is: what git tells its remote helper, and what its own caller told it. */
const REPOSITORY = ['GIT_DIR', 'GIT_COMMON_DIR', 'GIT_OBJECT_DIRECTORY', 'GIT_ALTERNATE_OBJECT_DIRECTORIES', 'GIT_SHALLOW_FILE'] as const

/** The same for the repository that a git of the agent's is at work in: of that one's variables only where it is. */
export function toCallerEnvironment(cwd: string, env: Readonly<Record<string, string>>): Record<string, string> {
  const places = REPOSITORY.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]] as const]))
  return { ...toToolEnvironment(cwd), ...Object.fromEntries(places) }
}
