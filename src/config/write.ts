import { lstat, mkdir, rmdir, unlink } from 'node:fs/promises'
import { dirname } from 'node:path'
import { AppError, codeOf, errnoOf } from '../core/errors.ts'
import { writeNewFile } from '../core/new-file.ts'

export interface NewFile {
  readonly path: string
  readonly text: string
}

const exists = (path: string): AppError =>
  new AppError('config-exists', `${path} is there already, and is not overwritten`, {
    hint: `edit ${path}, or move it aside; MOSAIC_CONFIG names another config directory`,
  })

async function assertAbsent(path: string): Promise<void> {
  const found = await lstat(path).catch((error: unknown) => {
    if (errnoOf(error) === 'ENOENT' || errnoOf(error) === 'ENOTDIR') return undefined
    throw error
  })
  if (found !== undefined) throw exists(path)
}

async function publish({ path, text }: NewFile): Promise<void> {
  await writeNewFile(path, text).catch((error: unknown) => {
    throw codeOf(error) === 'config-exists' ? exists(path) : error
  })
}

/** The folders that were made for a file, the deepest first. */
async function makeFolder(path: string): Promise<string[]> {
  const first = await mkdir(path, { recursive: true, mode: 0o700 })
  const made: string[] = []
  if (first !== undefined) for (let at = path; at.length >= first.length; at = dirname(at)) made.push(at)
  return made
}

/** Writes files that are not there yet, 0600 in folders of 0700: all or none. Throws `config-exists`, naming the first that is there. */
export async function writeNewFiles(files: readonly NewFile[]): Promise<void> {
  for (const { path } of files) await assertAbsent(path)
  const written: string[] = []
  const folders: string[] = []
  try {
    for (const file of files) {
      folders.unshift(...(await makeFolder(dirname(file.path))))
      await publish(file)
      written.push(file.path)
    }
  } catch (error) {
    await Promise.all(written.map((path) => unlink(path)))
    // what somebody else has put there meanwhile stays, and its folder
    for (const path of folders) await rmdir(path).catch(() => undefined)
    throw error
  }
}
