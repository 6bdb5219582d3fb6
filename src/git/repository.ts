import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { errnoOf } from '../core/errors.ts'

/** The working repository of a project: `<gitRoot>/<business>/<project>.git`, bare. Ids are safe path segments. */
export const repositoryPath = (gitRoot: string, business: string, project: string): string => join(gitRoot, business, `${project}.git`)

/** Where a repository is made before it is renamed into place; no business or project begins with a dot. */
export const unfinishedRepository = (gitRoot: string, business: string, project: string): string => join(gitRoot, business, `.new-${project}.git`)

/** Where pushes and bundles stand until they are judged, beside the repositories and on their file system. */
export const incomingRoot = (gitRoot: string): string => join(gitRoot, '.incoming')

/** What main of the projects is and was, without any task's work; no business begins with a dot. */
export const mainStoresRoot = (gitRoot: string): string => join(gitRoot, '.main')
export const mainStorePath = (gitRoot: string, business: string, project: string): string => join(mainStoresRoot(gitRoot), business, `${project}.git`)

export const MAIN_REF = 'refs/heads/main'
export const workRef = (task: string): string => `refs/heads/work/${task}`
export const approvedRef = (task: string): string => `refs/mosaic/approved/${task}`

/** Entries of a directory of ours; none where it is not there. */
export const entriesOf = (dir: string): Promise<string[]> =>
  readdir(dir).catch((error: unknown) => {
    if (errnoOf(error) === 'ENOENT' || errnoOf(error) === 'ENOTDIR') return []
    throw error
  })

const isTemporary = (name: string): boolean => name.endsWith('.lock') || name.startsWith('tmp_') || name.startsWith('.tmp-')

async function sweepBelow(dir: string, depth: number): Promise<string[]> {
  const entries = await readdir(dir, { withFileTypes: true })
  const swept: string[] = []
  for (const entry of entries) {
    const path = join(dir, entry.name)
    if (entry.isFile() && isTemporary(entry.name)) {
      await rm(path, { force: true })
      swept.push(path)
    } else if (entry.isDirectory() && depth > 0) swept.push(...(await sweepBelow(path, depth - 1)))
  }
  return swept
}

const DEPTH = 8

/** Removes what a killed git leaves in a working repository: lock files and temporary packs. Call under its lock only. Returns what it removed. */
export const sweepRepository = (repository: string): Promise<string[]> => sweepBelow(repository, DEPTH)
