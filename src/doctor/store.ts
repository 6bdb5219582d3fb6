import { lstatSync } from 'node:fs'
import type { ErrorCode } from '../core/codes.ts'
import { AppError } from '../core/errors.ts'
import { judgeFiles, type StoreFiles, storeFiles } from '../store/files.ts'
import { readMigrations } from '../store/migrations.ts'
import { fail, type Finding, ok, warn } from './check.ts'
import { checkDataRoot, isDirectory, isOpen } from './data-root.ts'
import type { Patient } from './patient.ts'

const modeOf = (path: string): number | null => {
  const stat = lstatSync(path, { throwIfNoEntry: false })
  return stat === undefined ? null : stat.mode & 0o777
}

/** What a backup mends; a restore wants a data root that is absent or empty. */
const GONE: readonly ErrorCode[] = ['store-lost', 'store-corrupt', 'store-unreadable', 'trail-broken']

function remedyOf({ code, hint }: AppError, root: string): string {
  if (hint?.startsWith('chmod ') === true) return hint
  if (code === 'store-newer') return 'install the version that wrote it, or a newer one'
  return GONE.includes(code)
    ? `mv ${root} ${root}.aside && mosaic restore FILE (env roots are in no backup: they stay in ${root}.aside/envs)`
    : (hint ?? 'mosaic doctor --bundle FILE')
}

function toFailure(error: unknown, root: string): Finding {
  if (!(error instanceof AppError)) throw error
  return fail({ name: 'mosaic.db', code: error.code, message: error.message, remedy: remedyOf(error, root) })
}

/** A write-ahead log without a host is what a crash leaves; the next start takes it in, and a copy of mosaic.db alone would lose it. */
function checkWal({ wal, db }: StoreFiles, { host }: Patient): Finding[] {
  const sizeBytes = lstatSync(wal, { throwIfNoEntry: false })?.size ?? 0
  if (host !== null || sizeBytes === 0) return []
  const message = `${wal} (${String(sizeBytes)} bytes) is left of a bus host that was killed: it belongs to ${db}, and the next start takes it in`
  return [warn({ name: 'write-ahead log', code: 'store-unreadable', message, remedy: 'mosaic bus start (never delete or copy one without the other)' })]
}

const checkModes = ({ db, wal, shm }: StoreFiles): Finding[] =>
  [db, wal, shm]
    .map((path) => ({ path, mode: modeOf(path) }))
    .filter(({ mode }) => mode !== null && (mode & 0o077) !== 0)
    .map(({ path, mode }) =>
      warn({ name: 'modes', code: 'data-root-unsafe', message: `${path} has mode ${(mode ?? 0).toString(8)}`, remedy: `chmod 600 ${path}` }),
    )

/** Plain reads of the files' first bytes: SQLite itself is never asked, since opening alone can change them. */
function checkFiles(patient: Patient): Finding[] {
  const files = storeFiles(patient.root)
  try {
    const found = judgeFiles(files, readMigrations().length)
    if (found === 'new') return [ok('mosaic.db', 'not made yet: the first mosaic bus start makes it')]
    return [ok('mosaic.db', files.db), ...checkWal(files, patient), ...checkModes(files)]
  } catch (error) {
    return [toFailure(error, patient.root)]
  }
}

export function checkStore(patient: Patient): Finding[] {
  const root = checkDataRoot(patient)
  return isOpen(patient) && isDirectory(patient.root) ? [...root, ...checkFiles(patient)] : root
}
