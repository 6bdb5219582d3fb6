import { randomBytes } from 'node:crypto'
import { chmod, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { syncPath } from '../core/durable.ts'
import { errnoOf } from '../core/errors.ts'
import { entriesOf, incomingRoot } from './repository.ts'

/** A directory of its own for one push or one fetch, on the repositories' file system; gone when it is disposed. */
export interface Incoming extends AsyncDisposable {
  readonly path: string
}

export async function openIncoming(gitRoot: string): Promise<Incoming> {
  const path = join(incomingRoot(gitRoot), randomBytes(8).toString('hex'))
  await mkdir(join(path, 'objects', 'pack'), { recursive: true, mode: 0o700 })
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) }
}

/** A pack is there for git once its index is: that one moves last, and goes first. */
const indexLast = (a: string, b: string): number => Number(a.endsWith('.idx')) - Number(b.endsWith('.idx'))

/** Packs that were moved into a repository. */
export interface AdmittedPacks {
  /** Removes them again; those that were there before stay. Only while nothing refers to their objects, under the same hold of the lock. */
  readonly undo: () => Promise<void>
}

async function removePacks(directory: string, names: readonly string[]): Promise<void> {
  for (const name of [...names].sort(indexLast).reverse()) await rm(join(directory, name), { force: true })
  await syncPath(directory)
}

/** Moves the packs of a quarantine into the repository; durable when it returns. git has synced the packs themselves. On failure nothing has moved. */
export async function admitPacks(quarantine: string, repository: string): Promise<AdmittedPacks> {
  const [from, to] = [join(quarantine, 'objects', 'pack'), join(repository, 'objects', 'pack')]
  const there = new Set(await entriesOf(to))
  const isWhole = (name: string): boolean => there.has(name.replace(/\.\w+$/, '.idx'))
  // a pack is named by its content: one that another push brought is the same, and is not ours to remove
  const names = (await entriesOf(from)).filter((name) => /^pack-[0-9a-f]{40}\.(pack|idx|rev)$/.test(name) && !isWhole(name))
  const undo = (): Promise<void> => removePacks(to, names)
  try {
    for (const name of names.sort(indexLast)) await rename(join(from, name), join(to, name))
    await syncPath(to)
  } catch (error) {
    await undo()
    throw error
  }
  return { undo }
}

/** The empty read-only file that stands for git's global configuration; made anew where it is not that. */
export async function ensureGlobalConfig(gitRoot: string): Promise<string> {
  await mkdir(gitRoot, { recursive: true, mode: 0o700 })
  const path = join(gitRoot, '.gitconfig')
  const text = await readFile(path, 'utf8').catch((error: unknown) => {
    if (errnoOf(error) === 'ENOENT') return null
    throw error
  })
  if (text !== '') {
    await rm(path, { force: true })
    await writeFile(path, '', { flag: 'wx', mode: 0o444 })
  }
  await chmod(path, 0o444)
  return path
}
