import { constants } from 'node:fs'
import { type FileHandle, open, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { errnoOf } from '../core/errors.ts'
import type { ArchiveWriter } from './write.ts'

const MAX_DEPTH = 32

export interface CollectOptions {
  /** Links to files are followed, as who wrote them wants; links to directories never. */
  readonly followLinks: boolean
  /** Names that are left out, wherever they stand. */
  readonly skip: (name: string) => boolean
  /** Aborts when the tree is no longer ours to read. */
  readonly signal?: AbortSignal
}

async function openRegular(path: string, followLinks: boolean): Promise<FileHandle | null> {
  const flags = constants.O_RDONLY | constants.O_NONBLOCK | (followLinks ? 0 : constants.O_NOFOLLOW)
  const file = await open(path, flags).catch((error: unknown) => {
    if (['ELOOP', 'ENOENT', 'ENXIO'].includes(errnoOf(error) ?? '')) return null
    throw error
  })
  if (file === null || (await file.stat()).isFile()) return file
  await file.close()
  return null
}

/** Adds a tree of the founder's or ours: directories and regular files. Returns the paths of what was left out, for the founder to know. Throws the signal's reason. */
export async function collectTree(archive: ArchiveWriter, from: string, into: string, options: CollectOptions, depth = 0): Promise<string[]> {
  const left: string[] = []
  for (const entry of (await readdir(from, { withFileTypes: true })).sort((a, b) => (a.name < b.name ? -1 : 1))) {
    const [path, member] = [join(from, entry.name), `${into}/${entry.name}`]
    options.signal?.throwIfAborted()
    if (options.skip(entry.name)) continue
    if (entry.isDirectory() && depth < MAX_DEPTH) {
      await archive.directory(member)
      left.push(...(await collectTree(archive, path, member, options, depth + 1)))
      continue
    }
    const file = entry.isDirectory() ? null : await openRegular(path, options.followLinks)
    if (file === null) left.push(path)
    else await archive.file(member, file).finally(() => file.close())
  }
  return left
}
