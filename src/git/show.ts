import { AppError } from '../core/errors.ts'
import { type GitRun, type RefDeps, runGit } from './refs.ts'
import { MAIN_REF } from './repository.ts'

interface ChangedFiles {
  readonly files: readonly string[]
  readonly acting: readonly string[]
  readonly complete: boolean
}

const DIFF_BYTES = 4 * 1024 * 1024

/** A link in the place of such a directory acts like what it leads to. */
const withContent = (directory: string): readonly string[] => [directory, `${directory}/**`]

const ANYWHERE = [
  ...['.husky', '.devcontainer', '.idea'].flatMap(withContent),
  ...['.vscode', '.vscode/tasks.json', '.vscode/settings.json', '.vscode/launch.json'],
  ...['.envrc', 'package.json', '.npmrc', '.yarnrc', '.yarnrc.yml', '.pnpmfile.cjs'],
  ...['setup.py', 'conftest.py', 'Makefile', '.pre-commit-config.yaml', '.gitattributes', 'build.rs'],
]
const AT_THE_TOP = ['.github/workflows', '.github/actions', '.circleci'].flatMap(withContent).concat('.github', '.gitlab-ci.yml', '.drone.yml', '.travis.yml')

/** Files that act by themselves once a person checks the commit out or installs from it, for git to look for: gitglossary(7), "pathspec". */
const ACTING = [...ANYWHERE.map((path) => `:(top,glob)**/${path}`), ...AT_THE_TOP.map((path) => `:(top,glob)${path}`)]

/** As much as was kept of what git printed. */
interface Printed {
  readonly text: string
  /** false: there is more of it. */
  readonly complete: boolean
}

const FLAGS = ['--no-ext-diff', '--no-textconv', '--no-color', '--no-renames', '--src-prefix=a/', '--dst-prefix=b/']
const READ: GitRun = { readOnly: true, stdoutLimit: DIFF_BYTES }

async function diff(deps: RefDeps, repository: string, commit: string, flags: readonly string[], paths: readonly string[] = []): Promise<Printed> {
  const args = ['-c', 'core.quotePath=false', 'diff', ...FLAGS, ...flags, '--merge-base', '--end-of-options', MAIN_REF, commit, '--', ...paths]
  const result = await runGit(deps, repository, args, READ)
  const complete = result.exitCode === 0
  if (!complete && result.stdout.length === 0) throw new AppError('push-not-found', `${commit} cannot be shown`)
  return { text: result.stdout.toString('utf8'), complete }
}

/** What a push changes against main, as a patch; the text is an agent's. */
export async function diffPush(deps: RefDeps, repository: string, commit: string): Promise<string> {
  const { text, complete } = await diff(deps, repository, commit, ['--patch'])
  return complete ? text : `${text}\n(cut at ${String(DIFF_BYTES)} bytes)\n`
}

interface Paths {
  readonly paths: readonly string[]
  readonly complete: boolean
}

/** A list that was cut ends with a part of a path, which is none. */
async function changed(deps: RefDeps, repository: string, commit: string, paths: readonly string[]): Promise<Paths> {
  const { text, complete } = await diff(deps, repository, commit, ['--name-only', '-z'], paths)
  return { paths: text.split('\0').slice(0, -1), complete }
}

/**
 * The paths that a push changes, and those of them that act by themselves: asked for on their own, so that no number of other files
 * hides them. `complete` is false when there are more of either than were kept.
 */
export async function changedFiles(deps: RefDeps, repository: string, commit: string): Promise<ChangedFiles> {
  const [files, acting] = await Promise.all([changed(deps, repository, commit, []), changed(deps, repository, commit, ACTING)])
  return { files: files.paths, acting: acting.paths, complete: files.complete && acting.complete }
}
