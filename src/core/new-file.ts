import { randomBytes } from 'node:crypto'
import { type FileHandle, link, lstat, open, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { syncPath } from './durable.ts'
import { AppError, errnoOf } from './errors.ts'
import { toFileError } from './file-error.ts'

/** A file that has its name once it is whole and durable, or is gone. */
export interface NewFile extends AsyncDisposable {
  readonly handle: FileHandle
  /** Adds to its end. Throws `disk-full`, `file-unusable`. */
  write(text: string): Promise<void>
  /** Throws `config-exists` when the name was taken meanwhile, `disk-full`, `file-unusable`. */
  publish(): Promise<void>
}

const taken = (path: string): AppError => new AppError('config-exists', `${path} is there already`, { hint: 'choose another name' })

async function assertFree(path: string): Promise<void> {
  const found = await lstat(path).catch((error: unknown) => {
    if (errnoOf(error) === 'ENOENT') return undefined
    throw error
  })
  if (found !== undefined) throw taken(path)
}

/** link(2) never replaces anything; where a file system has no hard links, a look must do. */
async function giveName(temporary: string, path: string): Promise<void> {
  try {
    await link(temporary, path)
    await rm(temporary)
  } catch (error) {
    if (errnoOf(error) === 'EEXIST') throw taken(path)
    if (!['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK'].includes(errnoOf(error) ?? '')) throw error
    await assertFree(path)
    await rename(temporary, path)
  }
}

async function open0600(path: string, temporary: string): Promise<FileHandle> {
  try {
    await assertFree(path)
    return await open(temporary, 'wx', 0o600)
  } catch (error) {
    throw toFileError(error, path)
  }
}

/** Begins a private file of that name, under another beside it. Throws `config-exists`, `disk-full`, `file-unusable`. */
export async function openNewFile(path: string): Promise<NewFile> {
  const temporary = `${path}.${randomBytes(4).toString('hex')}.partial`
  const handle = await open0600(path, temporary)
  let named = false
  return {
    handle,
    async write(text) {
      await handle.writeFile(text).catch((error: unknown) => {
        throw toFileError(error, path)
      })
    },
    async publish() {
      try {
        await handle.sync()
        await giveName(temporary, path)
        named = true
        await syncPath(dirname(path))
      } catch (error) {
        throw toFileError(error, path)
      }
    },
    async [Symbol.asyncDispose]() {
      await handle.close()
      if (!named) await rm(temporary, { force: true })
    },
  }
}

/** Writes a whole new file or none. Throws what `openNewFile` does. */
export async function writeNewFile(path: string, text: string): Promise<void> {
  await using file = await openNewFile(path)
  await file.write(text)
  await file.publish()
}
