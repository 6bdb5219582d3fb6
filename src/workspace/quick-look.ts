import type { HelperBind, HelperResult } from '../core/run-helper.ts'
import { gitEnvironment } from '../git/command.ts'
import { type AskDeps, prepareTimeout } from './ask.ts'
import { LOCKS, parseStatus, READ_FIRST, READ_FIRST_IN_TREE, type Status, STATUS_ARGS, UNDER_WAY } from './status.ts'

/**
 * Quick looks for the common case, in which nothing is to be done: a shell and git instead of Node, whose start is most of
 * what a launch costs. Anything but a plain "current" is left to the helper, which looks again and says why.
 */

const GLOBAL_CONFIG = '/tmp/mosaic.gitconfig'
const OUTPUT_BYTES = 64 * 1024
const OWN_CONFIG = `(umask 0333 && : >${GLOBAL_CONFIG}) || exit 70`

const ROOT_SCRIPT = String.raw`
set -u
${OWN_CONFIG}
git --git-dir="$1" rev-parse --verify --quiet --end-of-options "refs/heads/$2^{commit}" || exit 1
git --git-dir="$3" rev-parse --verify --quiet --end-of-options refs/heads/main || exit 1
`

const CLONE_SCRIPT = String.raw`
set -u
${OWN_CONFIG}
clone=$1
shift
[ ! -L "$clone" ] && [ -d "$clone" ] && cd "./$clone" && [ ! -L .git ] && [ -d .git ] || exit 1
for name in ${[...LOCKS, ...UNDER_WAY].join(' ')}; do
  if [ -e ".git/$name" ] || [ -L ".git/$name" ]; then exit 1; fi
done
for name in ${[...READ_FIRST_IN_TREE, ...READ_FIRST].join(' ')}; do
  if [ -p "$name" ]; then exit 1; fi
done
if read -r word ref <.git/HEAD && [ "$word" = ref: ] && [ -p ".git/$ref" ]; then exit 1; fi
exec git --no-pager ${STATUS_ARGS.join(' ')}
`

interface Probe {
  readonly script: string
  readonly args: readonly string[]
  readonly cwd: string
  readonly binds: readonly HelperBind[]
  readonly safeDirectories: readonly string[]
  readonly timeoutMs: number
  readonly signal?: AbortSignal | undefined
}

function run(deps: AskDeps, { script, args, cwd, binds, safeDirectories, timeoutMs, signal }: Probe): Promise<HelperResult> {
  return deps.runHelper({
    binds,
    command: ['/bin/sh', '-c', script, 'probe', ...args],
    cwd,
    env: gitEnvironment({ globalConfig: GLOBAL_CONFIG, safeDirectories }),
    timeoutMs,
    stdoutLimit: OUTPUT_BYTES,
    ...(signal === undefined ? {} : { signal }),
  })
}

export interface LookOptions {
  readonly timeoutMs: number
  readonly signal?: AbortSignal | undefined
}

/** The commit that both the root's branch and the working repository's main are at; null: they differ, or it needs a closer look. Throws `prepare-timeout`. */
export async function lookAtRoot(
  deps: AskDeps,
  root: { readonly commonDir: string; readonly branch: string; readonly repository: string },
  options: LookOptions,
): Promise<string | null> {
  const { commonDir, branch, repository } = root
  const safeDirectories = [commonDir, repository]
  const binds = safeDirectories.map((path) => ({ bind: { path }, readOnly: true }))
  const result = await run(deps, { script: ROOT_SCRIPT, args: [commonDir, branch, repository], cwd: '/', binds, safeDirectories, ...options })
  if (result.timedOut) throw prepareTimeout(`the look at ${commonDir}`)
  const [tip, main] = result.stdout.toString('utf8').split('\n')
  return result.exitCode === 0 && tip !== undefined && /^[0-9a-f]{40}$/.test(tip) && tip === main ? tip : null
}

/** What a clone is at, when nothing is under way in it; null: it needs a closer look. */
export async function lookAtClone(
  deps: AskDeps,
  workspace: { readonly fd: number; readonly path: string },
  id: string,
  options: LookOptions,
): Promise<Status | null | 'timed out'> {
  const path = `${workspace.path}/${id}`
  const binds = [{ bind: { fd: workspace.fd, path: workspace.path }, readOnly: true }]
  const result = await run(deps, { script: CLONE_SCRIPT, args: [id], cwd: workspace.path, binds, safeDirectories: [path, `${path}/.git`], ...options })
  if (result.timedOut) return 'timed out'
  return result.exitCode === 0 ? (parseStatus(result.stdout.toString('utf8')) ?? null) : null
}
