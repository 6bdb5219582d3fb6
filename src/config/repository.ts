import { readFileSync, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'

export interface Repository {
  /** The folder that holds the working tree. */
  readonly root: string
  /** The branch that is checked out; `main` when none is. */
  readonly branch: string
}

const DEFAULT_BRANCH = 'main'
const statOf = (path: string) => statSync(path, { throwIfNoEntry: false })

/** In a work tree or submodule `.git` is a file that names the real folder (gitrepository-layout(5)); null when it names none. */
export function gitDirectory(dotGit: string): string | null {
  if (statOf(dotGit)?.isDirectory() === true) return dotGit
  const target = /^gitdir: (.+)$/m.exec(readFileSync(dotGit, 'utf8'))?.[1]
  return target === undefined ? null : resolve(dirname(dotGit), target)
}

function branchOf(dotGit: string): string {
  try {
    return /^ref: refs\/heads\/(.+)$/m.exec(readFileSync(join(gitDirectory(dotGit) ?? dotGit, 'HEAD'), 'utf8'))?.[1] ?? DEFAULT_BRANCH
  } catch {
    return DEFAULT_BRANCH
  }
}

/** The git repository that a directory is in; null when it is in none. Reads files alone: git runs nothing here. */
export function findRepository(dir: string): Repository | null {
  for (let at = resolve(dir); ; at = dirname(at)) {
    const dotGit = join(at, '.git')
    if (statOf(dotGit) !== undefined) return { root: at, branch: branchOf(dotGit) }
    if (at === dirname(at)) return null
  }
}
