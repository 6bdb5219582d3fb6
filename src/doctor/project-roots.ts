import { accessSync, constants, existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { gitDirectory } from '../config/repository.ts'
import type { BusinessConfig } from '../config/types.ts'
import { errnoOf, messageOf } from '../core/errors.ts'
import { fail, type Finding, ok } from './check.ts'
import type { Patient } from './patient.ts'

/** A bare repository is its own. Files alone are read: git runs nothing here. */
function gitDirOf(root: string): string | null {
  const dotGit = join(root, '.git')
  if (!existsSync(dotGit)) return existsSync(join(root, 'HEAD')) && existsSync(join(root, 'objects')) ? root : null
  const found = gitDirectory(dotGit)
  return found === dotGit && !existsSync(join(dotGit, 'HEAD')) ? null : found
}

/** Of a linked work tree the branches are in the repository that it belongs to. */
function commonDirOf(gitDir: string): string {
  const file = join(gitDir, 'commondir')
  return existsSync(file) ? resolve(gitDir, readFileSync(file, 'utf8').trim()) : gitDir
}

function hasBranch(dir: string, branch: string): boolean {
  // another format than files: no look at it is worth a wrong word
  if (existsSync(join(dir, 'reftable'))) return true
  if (existsSync(join(dir, 'refs', 'heads', branch))) return true
  const packed = join(dir, 'packed-refs')
  return (
    existsSync(packed) &&
    readFileSync(packed, 'utf8')
      .split('\n')
      .some((line) => line.endsWith(` refs/heads/${branch}`))
  )
}

interface Project {
  readonly name: string
  readonly root: string
  readonly branch: string
}

const trouble = (name: string, message: string, remedy: string): Finding => fail({ name, code: 'checkout-failed', message, remedy })

function judge({ name, root, branch }: Project): Finding {
  accessSync(root, constants.R_OK | constants.X_OK)
  const gitDir = gitDirOf(root)
  if (gitDir === null)
    return trouble(name, `${root} is no git repository`, `git -C ${root} init -b ${branch} and a first commit, or correct the root in the business's file`)
  const dir = commonDirOf(gitDir)
  accessSync(join(dir, 'objects'), constants.R_OK | constants.X_OK)
  if (hasBranch(dir, branch)) return ok(name, `${root}, branch ${branch}`)
  return trouble(name, `${root} has no branch ${branch}`, `git -C ${root} branch ${branch}, or correct the project's branch in the business's file`)
}

function look(project: Project): Finding {
  const { name, root } = project
  try {
    return judge(project)
  } catch (error) {
    const remedy =
      errnoOf(error) === 'ENOENT'
        ? `correct the root in the business's file, or put the repository there: git clone URL ${root}`
        : `let the bus host's user read it: ls -ld ${root}`
    return trouble(name, `${root} cannot be read: ${messageOf(error)}`, remedy)
  }
}

const projectsOf = ({ id, projects }: BusinessConfig): Project[] =>
  Object.entries(projects).map(([name, { root, branch }]) => ({ name: `${id}/${name}`, root, branch }))

/** What a launch would clone: each project's root, a git repository with its branch, for us to read. */
export const checkProjectRoots = ({ config }: Patient): Finding[] => [...(config?.businesses.values() ?? [])].flatMap(projectsOf).map(look)
