import { existsSync } from 'node:fs'
import { CONFIG, type Manifest } from '../../backup/manifest.ts'
import { verifyArchive } from '../../backup/verify.ts'
import { AppError } from '../../core/errors.ts'
import { toFileError } from '../../core/file-error.ts'
import { newestSchema } from '../../store/snapshot.ts'
import { assertDataRoot, openDataRoot } from '../data-root.ts'
import { fillDataRoot, isEmpty, notEmpty } from './fill.ts'

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

function assertEmpty(dataRoot: string): void {
  if (!isEmpty(dataRoot)) throw notEmpty(dataRoot)
}

function assertKnown(file: string, { schema, version }: Manifest): void {
  if (schema <= newestSchema()) return
  throw new AppError('store-newer', `${file} holds a store of version ${String(schema)} (mosaic ${version}), this program knows ${String(newestSchema())}`, {
    hint: `install mosaic ${version} or newer`,
  })
}

const hasConfig = ({ members }: Manifest): boolean => members.some(({ path }) => path.startsWith(`${CONFIG}/`))

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
    const configRestored = await fillDataRoot(openDataRoot(dataRoot), { file, configDir: request.configDir, signal: request.signal, manifest, wasThere })
    return { manifest, dataRoot, configRestored }
  } catch (error) {
    throw toFileError(toFileError(error), dataRoot)
  }
}
