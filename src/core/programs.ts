import { accessSync, constants, statSync } from 'node:fs'
import { delimiter, isAbsolute, join } from 'node:path'

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return statSync(path).isFile()
  } catch {
    return false
  }
}

/** Where on PATH the first executable file of this name is; null: nowhere. Relative entries don't count. */
export const findOnPath = (program: string, path: string | undefined): string | null =>
  (path ?? '')
    .split(delimiter)
    .filter(isAbsolute)
    .map((dir) => join(dir, program))
    .find(isExecutable) ?? null
