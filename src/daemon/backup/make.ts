import { existsSync } from 'node:fs'
import { open, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { collectTree, type CollectOptions } from '../../backup/collect.ts'
import { CONFIG, type Manifest, REPOSITORIES, STORE_MEMBER, toManifest } from '../../backup/manifest.ts'
import { type ArchiveWriter, openArchive } from '../../backup/write.ts'
import { AppError } from '../../core/errors.ts'
import { silentLog } from '../../core/log.ts'
import { createRepositoryLocks } from '../../git/lock.ts'
import { copyStore, describeSnapshot, detachSnapshot } from '../../store/snapshot.ts'
import { toDataRootPaths } from '../data-root.ts'
import { gitRootOf } from '../git-service.ts'
import { openHostLock } from '../host-lock.ts'
import { newSnapshotPath, removeSnapshot } from './snapshot.ts'

const LOCK_TIMEOUT_MS = 120_000

export interface BackupRequest {
  readonly version: string
  readonly file: string
  readonly dataRoot: string
  readonly configDir: string
  /** Asks the running host for a copy of its store; null: none runs. */
  readonly askHost: (() => Promise<string>) | null
  readonly signal: AbortSignal
}

export interface Backup {
  readonly manifest: Manifest
  readonly sizeBytes: number
  /** What was neither a file nor a directory, and is not in it. */
  readonly left: readonly string[]
}

const noStore = (dataRoot: string): AppError => new AppError('store-not-found', `${dataRoot} holds no store`, { hint: 'mosaic bus start' })

/** Where the copy of the store is; the caller removes it. Without a host we are the host for that long, so that none starts meanwhile. */
async function takeSnapshot({ dataRoot, askHost }: BackupRequest): Promise<string> {
  if (askHost !== null) return askHost()
  const paths = toDataRootPaths(dataRoot)
  if (!existsSync(paths.busHost)) throw noStore(dataRoot)
  const snapshot = newSnapshotPath(paths.busHost)
  await using _lock = openHostLock(paths.lock)
  try {
    await copyStore(dataRoot, snapshot)
    return snapshot
  } catch (error) {
    removeSnapshot(snapshot)
    throw error
  }
}

async function addStore(archive: ArchiveWriter, snapshot: string): Promise<void> {
  const file = await open(snapshot, 'r')
  try {
    await archive.file(STORE_MEMBER, file)
  } finally {
    await file.close()
  }
}

/** What git or the intake are in the middle of making is not yet anybody's. */
const GIT: CollectOptions = { followLinks: false, skip: (name) => name.endsWith('.lock') || name.startsWith('tmp_') }
const CONFIGURATION: CollectOptions = { followLinks: true, skip: () => false }

const directoriesIn = async (path: string): Promise<string[]> =>
  existsSync(path)
    ? (await readdir(path, { withFileTypes: true })).filter((entry) => entry.isDirectory() && !entry.name.startsWith('.')).map(({ name }) => name)
    : []

/** Every working repository, each while nobody pushes to it. After the store: a commit that a row names is then there. */
async function addRepositories(archive: ArchiveWriter, { dataRoot, signal }: BackupRequest): Promise<string[]> {
  const locks = createRepositoryLocks({ log: silentLog })
  const root = gitRootOf(dataRoot)
  const left: string[] = []
  for (const business of await directoriesIn(root))
    for (const name of (await directoriesIn(join(root, business))).filter((found) => found.endsWith('.git'))) {
      const repository = join(root, business, name)
      const member = `${REPOSITORIES}/${business}/${name}`
      await archive.directory(member)
      const collect = async (held: AbortSignal): Promise<string[]> => {
        const found = await collectTree(archive, repository, member, { ...GIT, signal: held })
        // a repository that changed while it was read is none that works
        held.throwIfAborted()
        return found
      }
      left.push(...(await locks.withLock(repository, { timeoutMs: LOCK_TIMEOUT_MS, signal }, collect)))
    }
  return left
}

async function writeArchive(archive: ArchiveWriter, request: BackupRequest, snapshot: string): Promise<Backup> {
  const { version, dataRoot, configDir } = request
  detachSnapshot(snapshot)
  const store = await describeSnapshot(snapshot)
  await addStore(archive, snapshot)
  const left = existsSync(configDir) ? await collectTree(archive, configDir, CONFIG, CONFIGURATION) : []
  left.push(...(await addRepositories(archive, request)))
  const { members, directories } = archive
  const manifest = toManifest({ version, at: new Date().toISOString(), ...store, dataRoot, configDir, directories: [...directories], members: [...members] })
  return { manifest, left, sizeBytes: await archive.finish(manifest) }
}

/**
 * Writes what cannot be made again into one private file: the store, the configuration, the working repositories. Throws
 * `config-exists`, `file-unusable`, `disk-full`, `store-…`, `trail-broken`, `busy`.
 */
export async function makeBackup(request: BackupRequest): Promise<Backup> {
  await using archive = await openArchive(request.file, request.signal)
  const snapshot = await takeSnapshot(request)
  try {
    return await writeArchive(archive, request, snapshot)
  } finally {
    removeSnapshot(snapshot)
  }
}
