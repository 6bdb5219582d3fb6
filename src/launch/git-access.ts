/** git finds it on PATH for URLs `mosaic::<project>`: gitremote-helpers(7). */
export const GIT_REMOTE = 'git-remote-mosaic'
export const GIT_REMOTE_PROGRAM = 'git-remote.mjs'

/** The directory is the bundle's own, where the program stands beside it. */
export const GIT_REMOTE_WRAPPER = `#!/bin/sh\nexec node "\${0%/*}/${GIT_REMOTE_PROGRAM}" "$@"\n`

/**
 * A session's git configuration by environment (git-config(1), GIT_CONFIG_COUNT), which holds in every clone and leaves the agent's
 * own files alone: a project's root, which is not there, stands for the remote helper. What the role itself sets that way stays.
 */
export function toGitVariables(
  projects: Readonly<Record<string, { readonly root: string }>>,
  roleEnv: Readonly<Record<string, string>>,
): Record<string, string> {
  const first = Number(roleEnv.GIT_CONFIG_COUNT ?? 0)
  const variables = Object.entries(projects).flatMap(([id, { root }], n) => [
    [`GIT_CONFIG_KEY_${String(first + n)}`, `url.mosaic::${id}.insteadOf`] as const,
    [`GIT_CONFIG_VALUE_${String(first + n)}`, root] as const,
  ])
  return variables.length === 0 ? {} : { ...Object.fromEntries(variables), GIT_CONFIG_COUNT: String(first + variables.length / 2) }
}
