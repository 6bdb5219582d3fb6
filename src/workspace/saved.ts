import { stat } from 'node:fs/promises'
import { gitEnvironment } from '../git/command.ts'
import { mainOf } from '../git/main-store.ts'
import { type AskDeps, prepareTimeout } from './ask.ts'
import type { LookOptions } from './quick-look.ts'

const GLOBAL_CONFIG = '/tmp/mosaic.gitconfig'
const NOT_SAVED = 1

/** Standard input: commits. Exit 1 unless the refs of the repository reach each of them. */
const SAVED_SCRIPT = String.raw`
set -u
(umask 0333 && : >${GLOBAL_CONFIG}) || exit 70
git cat-file --batch-check='%(objecttype) %(objectname)' >/tmp/tips || exit 70
grep -qv '^commit ' /tmp/tips && exit 1
sed -n 's/^commit //p' /tmp/tips >/tmp/revs && git for-each-ref --format='^%(objectname)' >>/tmp/revs || exit 70
git rev-list --max-count=1 --stdin </tmp/revs >/tmp/beyond || exit 70
[ ! -s /tmp/beyond ] || exit 1
`

/** Does a working repository keep all of these commits? Asked where nothing of an agent's runs. No: there is no such repository. Throws `prepare-timeout`. */
export async function isSaved(deps: AskDeps, repository: string, tips: readonly string[], { timeoutMs, signal }: LookOptions): Promise<boolean> {
  const isThere = await stat(repository).then(
    () => true,
    () => false,
  )
  if (!isThere) return false
  const main = await mainOf(repository)
  if (tips.every((tip) => tip === main)) return true
  const result = await deps.runHelper({
    binds: [{ bind: { path: repository }, readOnly: true }],
    command: ['/bin/sh', '-c', SAVED_SCRIPT, 'saved'],
    cwd: repository,
    env: gitEnvironment({ globalConfig: GLOBAL_CONFIG, safeDirectories: [repository], gitDir: repository }),
    input: tips.map((oid) => `${oid}\n`).join(''),
    timeoutMs,
    ...(signal === undefined ? {} : { signal }),
  })
  if (result.timedOut) throw prepareTimeout(`the look at ${repository}`)
  if (result.exitCode !== 0 && result.exitCode !== NOT_SAVED)
    deps.log.warn({ repository, stderr: result.stderr.slice(0, 500) }, 'what is pushed cannot be told')
  return result.exitCode === 0
}
