import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmdirSync, rmSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { extractArchive } from '../../backup/extract.ts'
import { CONFIG, type Manifest, REPOSITORIES, STORE_MEMBER } from '../../backup/manifest.ts'
import { verifyArchive } from '../../backup/verify.ts'
import { AppError } from '../../core/errors.ts'
import { toFileError } from '../../core/file-error.ts'
import { describeSnapshot, newestSchema } from '../../store/snapshot.ts'
import { assertDataRoot, type DataRootPaths, openDataRoot, toDataRootPaths } from '../data-root.ts'
import { gitRootOf } from '../git-service.ts'
import { openHostLock } from '../host-lock.ts'

export interface RestoreRequest {
  readonly file: string
  readonly configDir: string
  readonly signal: AbortSignal
  /** Verify and say where to; write nothing. */
  readonly dryRun: boolean
  /** Where to, when the archive's own `system.yaml` is this text; null: it has none. */
  readonly findDataRoot: (systemFile: string | null) => Promise<string>
}

export interface Restored {
  readonly manifest: Manifest
  readonly dataRoot: string
  /** false: there is a configuration, which is left as it is. */
  readonly configRestored: boolean
}

const isEmpty = (path: string): boolean => !existsSync(path) || readdirSync(path).length === 0

function assertEmpty(dataRoot: string): void {
  if (isEmpty(dataRoot)) return
  throw new AppError('data-root-not-empty', `${dataRoot} is not empty, and a restore never replaces anything`, {
    hint: `choose another --data-root, or: mv ${dataRoot} ${dataRoot}.aside`,
  })
}

function assertKnown(file: string, { schema, version }: Manifest): void {
  if (schema <= newestSchema()) return
  throw new AppError('store-newer', `${file} holds a store of version ${String(schema)} (mosaic ${version}), this program knows ${String(newestSchema())}`, {
    hint: `install mosaic ${version} or newer`,
  })
}

async function syncPath(path: string): Promise<void> {
  const handle = await open(path, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

/** The copy in the archive must say of itself what the manifest says of it. */
async function assertStore(path: string, { records, head, schema }: Manifest): Promise<void> {
  const found = await describeSnapshot(path)
  if (found.head === head && found.records === records && found.schema === schema) return
  throw new AppError('trail-mismatch', `the trail in the backup ends at ${found.head}, and its manifest says ${head}`)
}

/** Marker first, database last: a host that meets a restore which was cut off finds a lost store, and says so. */
async function moveIn({ root }: DataRootPaths, staged: string, at: string): Promise<void> {
  const marker = await open(join(root, 'mosaic.db.created'), 'wx', 0o600)
  await marker.appendFile(`${at}\n`)
  await marker.sync()
  await marker.close()
  const repositories = join(staged, REPOSITORIES)
  if (existsSync(repositories)) renameSync(repositories, gitRootOf(root))
  renameSync(join(staged, STORE_MEMBER), join(root, 'mosaic.db'))
  await syncPath(root)
}

function restoreConfig(staged: string, configDir: string): boolean {
  const from = join(staged, CONFIG)
  if (!existsSync(from) || !isEmpty(configDir)) return false
  mkdirSync(dirname(configDir), { recursive: true, mode: 0o700 })
  cpSync(from, configDir, { recursive: true, errorOnExist: true, force: false })
  return true
}

const hasConfig = ({ members }: Manifest): boolean => members.some(({ path }) => path.startsWith(`${CONFIG}/`))

/** Takes back what an attempt made in a data root that was absent or empty. */
function undo({ root, busHost }: DataRootPaths, wasThere: boolean): void {
  for (const name of ['mosaic.db', 'mosaic.db.created']) rmSync(join(root, name), { force: true })
  for (const path of [busHost, gitRootOf(root)]) rmSync(path, { recursive: true, force: true })
  if (!wasThere) rmdirSync(root)
}

async function fill(paths: DataRootPaths, request: RestoreRequest, manifest: Manifest): Promise<boolean> {
  await using _lock = openHostLock(paths.lock)
  const staged = mkdtempSync(join(paths.busHost, 'restore-'))
  try {
    await extractArchive(request.file, manifest, { into: staged, signal: request.signal })
    await assertStore(join(staged, STORE_MEMBER), manifest)
    await moveIn(paths, staged, manifest.at)
    return restoreConfig(staged, request.configDir)
  } finally {
    rmSync(staged, { recursive: true, force: true })
  }
}

/**
 * Puts a backup into a data root that is absent or empty, and its configuration where there is none. Everything is verified
 * first. Throws `backup-invalid`, `data-root-not-empty`, `store-newer`,
 * `trail-mismatch`, `data-root-unsafe`, `host-running`, `file-unusable`, `disk-full`.
 */
export async function restoreBackup(request: RestoreRequest): Promise<Restored> {
  const { file } = request
  const { manifest, wanted } = await verifyArchive(file, `${CONFIG}/system.yaml`)
  assertKnown(file, manifest)
  const dataRoot = await request.findDataRoot(wanted?.toString('utf8') ?? null)
  assertEmpty(dataRoot)
  const wasThere = existsSync(dataRoot)
  if (request.dryRun && wasThere) assertDataRoot(dataRoot)
  if (request.dryRun) return { manifest, dataRoot, configRestored: isEmpty(request.configDir) && hasConfig(manifest) }
  try {
    const configRestored = await fill(openDataRoot(dataRoot), request, manifest)
    return { manifest, dataRoot, configRestored }
  } catch (error) {
    if (existsSync(dataRoot)) undo(toDataRootPaths(dataRoot), wasThere)
    throw toFileError(toFileError(error), dataRoot)
  }
}
