import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmdirSync, rmSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { extractArchive } from '../../backup/extract.ts'
import { CONFIG, type Manifest, REPOSITORIES, STORE_MEMBER } from '../../backup/manifest.ts'
import { syncPath, syncTree } from '../../core/durable.ts'
import { AppError, errnoOf } from '../../core/errors.ts'
import { describeSnapshot } from '../../store/snapshot.ts'
import type { DataRootPaths } from '../data-root.ts'
import { gitRootOf } from '../git-service.ts'
import { openHostLock } from '../host-lock.ts'

export interface FillRequest {
  readonly file: string
  readonly configDir: string
  readonly signal: AbortSignal
  readonly manifest: Manifest
  /** Was there a data root before? Then it stays when the attempt fails. */
  readonly wasThere: boolean
}

/** The file of the host lock, which is made before the lock is taken. */
const LOCK = 'host.lock'

export const isEmpty = (path: string): boolean => !existsSync(path) || readdirSync(path).length === 0

export const notEmpty = (dataRoot: string): AppError =>
  new AppError('data-root-not-empty', `${dataRoot} is not empty, and a restore never replaces anything`, {
    hint: `choose another --data-root, or: mv ${dataRoot} ${dataRoot}.aside`,
  })

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

/** Files that are on the disk, into a directory that has nothing else; on failure none of them is in it. */
async function moveConfigIn(copy: string, configDir: string): Promise<void> {
  const moved: string[] = []
  try {
    if (readdirSync(configDir).length > 1) throw new Error(`somebody else writes to ${configDir}`)
    for (const name of readdirSync(copy)) {
      renameSync(join(copy, name), join(configDir, name))
      moved.push(name)
    }
    await syncPath(configDir)
  } catch (error) {
    for (const name of moved) rmSync(join(configDir, name), { recursive: true })
    throw error
  }
}

/** Whole, where there is none: true. The copy is made in the directory itself, which may be all that is ours to write to. */
async function restoreConfig(staged: string, configDir: string): Promise<boolean> {
  const from = join(staged, CONFIG)
  if (!existsSync(from) || !isEmpty(configDir)) return false
  const isNew = mkdirSync(configDir, { recursive: true, mode: 0o700 }) !== undefined
  const copy = mkdtempSync(join(configDir, '.restore-'))
  try {
    cpSync(from, copy, { recursive: true })
    await syncTree(copy)
    await moveConfigIn(copy, configDir)
    return true
  } finally {
    rmSync(copy, { recursive: true })
    if (isNew) removeIfEmpty(configDir)
  }
}

/** Under the lock: between the first look and the lock a bus host may have lived here, and all of this is its. */
function assertStillEmpty({ root, busHost }: DataRootPaths): void {
  const foreign = readdirSync(root).filter((name) => name !== basename(busHost))
  const served = readdirSync(busHost).filter((name) => name !== LOCK)
  if (foreign.length > 0 || served.length > 0) throw notEmpty(root)
}

/** Under the lock, in a data root that was empty when it was taken: whatever is in it now is this attempt's. The directories go when nothing else is in them. */
function undo({ root, busHost, lock }: DataRootPaths, wasThere: boolean): void {
  for (const name of ['mosaic.db', 'mosaic.db.created']) rmSync(join(root, name), { force: true })
  rmSync(gitRootOf(root), { recursive: true, force: true })
  rmSync(lock, { force: true })
  for (const path of [busHost, ...(wasThere ? [] : [root])]) removeIfEmpty(path)
}

function removeIfEmpty(path: string): void {
  try {
    rmdirSync(path)
  } catch (error) {
    if (errnoOf(error) !== 'ENOTEMPTY') throw error
  }
}

async function stageAndMove(paths: DataRootPaths, { file, configDir, signal, manifest }: FillRequest): Promise<boolean> {
  const staged = mkdtempSync(join(paths.busHost, 'restore-'))
  try {
    await extractArchive(file, manifest, { into: staged, signal })
    await assertStore(join(staged, STORE_MEMBER), manifest)
    await syncTree(staged)
    await moveIn(paths, staged, manifest.at)
    return await restoreConfig(staged, configDir)
  } finally {
    rmSync(staged, { recursive: true, force: true })
  }
}

/**
 * Puts a verified archive into a data root that was empty a moment ago; was its configuration put in place, too? What fails is taken back,
 * and nothing of anybody else's with it. Throws `host-running`, `data-root-not-empty`, `backup-invalid`, `trail-mismatch`.
 */
export async function fillDataRoot(paths: DataRootPaths, request: FillRequest): Promise<boolean> {
  await using _lock = openHostLock(paths.lock)
  assertStillEmpty(paths)
  try {
    return await stageAndMove(paths, request)
  } catch (error) {
    undo(paths, request.wasThere)
    throw error
  }
}
