import { randomBytes } from 'node:crypto'
import { link, lstat, mkdir, open, rm, unlink } from 'node:fs/promises'
import { dirname } from 'node:path'
import { syncPath } from '../core/durable.ts'
import { AppError, errnoOf } from '../core/errors.ts'

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

async function writeSynced(path: string, text: string): Promise<void> {
  await using handle = await open(path, 'wx', 0o600)
  await handle.writeFile(text)
  await handle.sync()
}

/** Whole and synced, or not there; link(2), unlike rename(2), refuses a name that is taken. */
async function publish({ path, text }: NewFile): Promise<void> {
  const temporary = `${path}.${randomBytes(6).toString('hex')}.new`
  try {
    await writeSynced(temporary, text)
    await link(temporary, path)
  } catch (error) {
    throw errnoOf(error) === 'EEXIST' ? exists(path) : error
  } finally {
    await rm(temporary, { force: true })
  }
  await syncPath(dirname(path))
}

/** Writes files that are not there yet, 0600 in folders of 0700: all or none. Throws `config-exists`, naming the first that is there. */
export async function writeNewFiles(files: readonly NewFile[]): Promise<void> {
  for (const { path } of files) await assertAbsent(path)
  const written: string[] = []
  try {
    for (const file of files) {
      await mkdir(dirname(file.path), { recursive: true, mode: 0o700 })
      await publish(file)
      written.push(file.path)
    }
  } catch (error) {
    await Promise.all(written.map((path) => unlink(path)))
    throw error
  }
}
