import { AppError } from '../core/errors.ts'
import { type GitRun, type RefDeps, runGit } from './refs.ts'
import { MAIN_REF } from './repository.ts'

const DIFF_BYTES = 4 * 1024 * 1024

/** Files that act by themselves once a person checks the commit out or installs from it. */
const ACTING = [
  /(^|\/)\.husky\//,
  /(^|\/)\.envrc$/,
  /(^|\/)\.vscode\/(tasks|settings|launch)\.json$/,
  /(^|\/)\.(devcontainer|idea)\//,
  /(^|\/)package\.json$/,
  /(^|\/)\.(npmrc|yarnrc|yarnrc\.yml|pnpmfile\.cjs)$/,
  /(^|\/)(setup\.py|conftest\.py|Makefile|\.pre-commit-config\.yaml|\.gitattributes|build\.rs)$/,
  /^\.github\/(workflows|actions)\//,
  /^\.(gitlab-ci\.yml|circleci\/|drone\.yml|travis\.yml)/,
]

export const actsByItself = (path: string): boolean => ACTING.some((pattern) => pattern.test(path))

const FLAGS = ['--no-ext-diff', '--no-textconv', '--no-color', '--no-renames', '--src-prefix=a/', '--dst-prefix=b/']
const READ: GitRun = { readOnly: true, stdoutLimit: DIFF_BYTES }

async function diff(deps: RefDeps, repository: string, commit: string, ...more: readonly string[]): Promise<string> {
  const result = await runGit(
    deps,
    repository,
    ['-c', 'core.quotePath=false', 'diff', ...FLAGS, ...more, '--merge-base', '--end-of-options', MAIN_REF, commit, '--'],
    READ,
  )
  if (result.exitCode === 0) return result.stdout.toString('utf8')
  if (result.stdout.length === 0) throw new AppError('push-not-found', `${commit} cannot be shown`)
  return `${result.stdout.toString('utf8')}\n(cut at ${String(DIFF_BYTES)} bytes)\n`
}

/** What a push changes against main, as a patch; the text is an agent's. */
export const diffPush = (deps: RefDeps, repository: string, commit: string): Promise<string> => diff(deps, repository, commit, '--patch')

/** The paths that a push changes, and those of them that act by themselves. */
export async function changedFiles(
  deps: RefDeps,
  repository: string,
  commit: string,
): Promise<{ readonly files: readonly string[]; readonly acting: readonly string[] }> {
  const files = (await diff(deps, repository, commit, '--name-only', '-z')).split('\0').filter((path) => path !== '')
  return { files, acting: files.filter(actsByItself) }
}
