import { createRequire } from 'node:module'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { AppError, errnoOf, messageOf } from '../core/errors.ts'

/** The folder whose node_modules has it: that of this package, or of whatever depends on this package. */
const installRoot = (): string => join(createRequire(import.meta.url).resolve('better-sqlite3/package.json'), '..', '..', '..')

/** dlopen's refusal, of an addon for another version of Node among others, or no addon at all. */
const isAddonFailure = (error: unknown): boolean => errnoOf(error) === 'ERR_DLOPEN_FAILED' || messageOf(error).startsWith('Could not locate the bindings file')

function addonMissing(error: unknown): AppError {
  const why = messageOf(error)
    .replace(/\s*Tried:[^]*/, '')
    .replaceAll(/\s*\n\s*/g, ' ')
  const message = `better-sqlite3 does not load in Node ${process.versions.node} (${process.execPath}): ${why}`
  return new AppError('program-missing', message, { hint: `cd ${installRoot()} && npm rebuild better-sqlite3`, cause: error })
}

/** Every connection is made here. Throws `program-missing` where SQLite itself cannot be loaded, as after an upgrade of Node. */
export function openDatabase(path: string, options: Database.Options = {}): Database.Database {
  try {
    return new Database(path, options)
  } catch (error) {
    throw isAddonFailure(error) ? addonMissing(error) : error
  }
}

/** Throws `program-missing`; touches no file. */
export function loadSqlite(): void {
  openDatabase(':memory:').close()
}
