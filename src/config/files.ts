import { constants } from 'node:fs'
import { open, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { AppError, errnoOf } from '../core/errors.ts'
import { formatProblem } from './problem.ts'

const LARGEST_BYTES = 1024 * 1024
const SUFFIX = '.yaml'

export interface FileName {
  readonly id: string
  readonly file: string
}

const systemFile = (configDir: string): string => join(configDir, 'system.yaml')

/** The files of a config root; other names are not ours, but `.yml` is a mistake that would pass unseen, so it is listed too. */
export interface ConfigFiles {
  readonly system: string
  readonly businesses: readonly FileName[]
  readonly misnamed: readonly string[]
}

function absent(file: string, message: string): AppError {
  const problem = { file, line: 1, column: 1, path: '', message }
  return new AppError('config-not-found', `there is no configuration: ${formatProblem(problem)}`, { hint: 'mosaic init', data: { errors: [problem] } })
}

/** Lists system.yaml and businesses/*.yaml, sorted. Throws `config-not-found` when there is no business. */
export async function listFiles(configDir: string): Promise<ConfigFiles> {
  const folder = join(configDir, 'businesses')
  const names = await readdir(folder).catch((error: unknown) => {
    if (errnoOf(error) === 'ENOENT') return []
    throw absent(folder, `can't be read: ${errnoOf(error) ?? 'unknown error'}`)
  })
  const seen = names.filter((name) => !name.startsWith('.')).sort()
  const businesses = seen.filter((name) => name.endsWith(SUFFIX)).map((name) => ({ id: name.slice(0, -SUFFIX.length), file: join(folder, name) }))
  const misnamed = seen.filter((name) => name.endsWith('.yml')).map((name) => join(folder, name))
  return { system: systemFile(configDir), businesses, misnamed }
}

/** Throws `config-not-found` for a root that holds no configuration. */
export async function requireFiles(files: ConfigFiles): Promise<void> {
  const handle = await open(files.system, constants.O_RDONLY | constants.O_NONBLOCK).catch((error: unknown) => {
    if (errnoOf(error) === 'ENOENT' || errnoOf(error) === 'ENOTDIR') throw absent(files.system, 'is missing')
  })
  await handle?.close()
  if (files.businesses.length === 0 && files.misnamed.length === 0)
    throw absent(join(files.system, '..', 'businesses'), `holds no business: no *${SUFFIX} file`)
}

export type FileText = { readonly text: string } | { readonly fault: string }

/** The text of a configuration file, or why it can't be had. A FIFO in its place does not block. */
export async function readText(file: string): Promise<FileText> {
  try {
    await using handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK)
    const stat = await handle.stat()
    if (!stat.isFile()) return { fault: 'is no regular file' }
    if (stat.size > LARGEST_BYTES) return { fault: `is larger than ${String(LARGEST_BYTES)} bytes` }
    return decode(await handle.readFile())
  } catch (error) {
    return { fault: `can't be read: ${errnoOf(error) ?? 'unknown error'}` }
  }
}

function decode(bytes: Buffer): FileText {
  try {
    return { text: new TextDecoder('utf-8', { fatal: true }).decode(bytes) }
  } catch {
    return { fault: 'is not UTF-8 text' }
  }
}
