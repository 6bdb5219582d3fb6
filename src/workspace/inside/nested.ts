import { type Dirent, lstatSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { UnsavedReason } from '../../protocol/prepare.ts'
import { type Clone, inClone, isDirectory } from './look.ts'
import { pathIn } from './linked-trees.ts'

interface Found {
  readonly gitDirs: string[]
  /** Files in the place of a `.git`: they lead to one. */
  readonly links: string[]
}

interface Place {
  readonly path: string
  /** Is it where git keeps the repositories of submodules, rather than files of a tree? */
  readonly holdsModules: boolean
}

const modulesOf = (gitDir: string): Place => ({ path: join(gitDir, 'modules'), holdsModules: true })

/** Looks at one directory of a clone's tree; returns those below it. */
function lookIn({ path, holdsModules }: Place, found: Found): readonly Place[] {
  const entries: readonly Dirent[] = readdirSync(path, { withFileTypes: true })
  if (holdsModules && entries.some(({ name }) => name === 'HEAD')) {
    found.gitDirs.push(path)
    return entries.some(({ name }) => name === 'modules') ? [modulesOf(path)] : []
  }
  return entries.flatMap((entry) => {
    const inside = join(path, entry.name)
    const isGit = !holdsModules && entry.name === '.git'
    if (!entry.isDirectory()) {
      if (isGit) found.links.push(inside)
      return []
    }
    if (!isGit) return [{ path: inside, holdsModules }]
    found.gitDirs.push(inside)
    return isDirectory(modulesOf(inside).path) ? [modulesOf(inside)] : []
  })
}

/** Every repository in a clone but its own: submodules, and what stands in its folders, which git looks into only when it does not ignore them. */
function findNested(clone: Clone): Found | 'hung' {
  const found: Found = { gitDirs: [], links: [] }
  const places = [...lookIn({ path: clone.path, holdsModules: false }, found)]
  for (let place = places.pop(); place !== undefined; place = places.pop()) {
    if (clone.deadline.leftMs() === 0) return 'hung'
    places.push(...lookIn(place, found))
  }
  const own = join(clone.path, '.git')
  return { ...found, gitDirs: found.gitDirs.filter((gitDir) => gitDir !== own) }
}

/** Commits that it did not get from where it was cloned from. */
async function judgeNested(clone: Clone, gitDir: string): Promise<UnsavedReason | null> {
  const run = await inClone({ ...clone, settings: { ...clone.settings, gitDir } }, 'rev-list', '--max-count=1', '--all', '--not', '--remotes')
  if (run.timedOut) return 'hung'
  if (run.status !== 0) return 'unreadable'
  return run.stdout === '' ? null : 'unpushed'
}

/** Does the file lead into one of these? */
function leadsInto(gitDirs: readonly string[], link: string): boolean {
  const path = pathIn(link, 'gitdir: ')
  return path !== null && gitDirs.some((gitDir) => path === gitDir || path.startsWith(`${gitDir}/`))
}

/** Why a repository within a clone, ignored or not, may not go. `known` are the links of worktrees that were looked at. */
export async function judgeNestedIn(clone: Clone, known: readonly string[]): Promise<UnsavedReason | null> {
  const modules = lstatSync(modulesOf(join(clone.path, '.git')).path, { throwIfNoEntry: false })
  if (modules?.isDirectory() === false) return 'unreadable'
  let found: Found | 'hung'
  try {
    found = findNested(clone)
  } catch {
    return 'unreadable' // who closes a directory has something in it
  }
  if (found === 'hung') return 'hung'
  const { gitDirs, links } = found
  if (links.some((link) => !known.includes(link) && !leadsInto(gitDirs, link))) return 'unreadable'
  for (const gitDir of gitDirs) {
    const reason = await judgeNested(clone, gitDir)
    if (reason !== null) return reason
  }
  return null
}
