import { renameSync } from 'node:fs'
import { join } from 'node:path'
import type { GitSettings } from '../../git/command.ts'
import type { CloneRequest } from '../../protocol/prepare.ts'
import { temporaryClone } from '../names.ts'
import type { Deadline } from './deadline.ts'
import { removeNames } from './empty.ts'
import { mustGit } from './run-git.ts'

interface CloneDeps {
  readonly workspace: string
  readonly settings: GitSettings
  readonly deadline: Deadline
}

const FETCH_FLAGS = ['--quiet', '--no-tags', '--no-write-fetch-head', '--no-auto-maintenance', '--no-recurse-submodules']
/** Where a clone keeps what it knows of main: the name that `git fetch origin` updates too. */
export const TRACKING = 'refs/remotes/origin/main'

export const fetchMain = (repository: string): readonly string[] => ['fetch', ...FETCH_FLAGS, '--end-of-options', repository, `+refs/heads/main:${TRACKING}`]

const remotes = ({ id, root, branch }: CloneRequest): readonly (readonly [string, string])[] => [
  ['remote.origin.url', root],
  ['remote.origin.fetch', '+refs/heads/*:refs/remotes/origin/*'],
  ['remote.mosaic.url', `mosaic::${id}`],
  ['remote.mosaic.fetch', '+refs/heads/*:refs/remotes/mosaic/*'],
  [`branch.${branch}.remote`, 'origin'],
  [`branch.${branch}.merge`, 'refs/heads/main'],
]

/**
 * Clones main from its store under a temporary name and renames it into place. Init and fetch instead of `git
 * clone`: only main's own objects come over, as copies (never hard links).
 */
export async function makeClone({ workspace, settings, deadline }: CloneDeps, project: CloneRequest): Promise<void> {
  const name = temporaryClone(project.id)
  const cwd = join(workspace, name)
  removeNames(workspace, [name])
  await mustGit(settings, ['init', '--quiet', '--template=', `--initial-branch=${project.branch}`, '--end-of-options', cwd], { deadline })
  for (const [key, value] of remotes(project)) await mustGit(settings, ['config', '--end-of-options', key, value], { deadline, cwd })
  await mustGit({ ...settings, transport: 'file' }, fetchMain(project.repository), { deadline, cwd })
  // git reset knows no --end-of-options; the tip is a parsed object id
  await mustGit(settings, ['reset', '--quiet', '--hard', project.tip, '--'], { deadline, cwd })
  renameSync(cwd, join(workspace, project.id))
}
