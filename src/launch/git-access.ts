/** git finds it on PATH for URLs `mosaic::<project>`: gitremote-helpers(7). */
export const GIT_REMOTE = 'git-remote-mosaic'

/**
 * The runner serves git itself, since the start of a Node costs more than a push: it sees the FIFO appear, opens git's two pipes, 5
 * and 6 of the process that the FIFO is named after (proc(5)), says so by a line, and what is for standard error comes behind that.
 * 0 and 1 are the shell's own to redirect. git sees the end of 6 once all is said.
 */
export const GIT_REMOTE_PROGRAM = `#!/bin/sh
exec 5<&0 6>&1
tools=\${MOSAIC_TOOL_SOCKET:-/run/agent/tools.sock}
call=\${tools%/*}/git/$$
mkfifo -m 600 "$call" && exec 3<>"$call" 4<"$call" && read -r go <&4 || exit 128
exec cat <&4 >&2 3>&- 5<&-
`

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
