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

/** Is an executable file of this name on PATH? Relative entries don't count. */
export const isOnPath = (program: string, path: string | undefined): boolean =>
  (path ?? '').split(delimiter).some((dir) => isAbsolute(dir) && isExecutable(join(dir, program)))
