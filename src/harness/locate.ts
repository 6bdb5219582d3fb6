import { constants } from 'node:fs'
import { access, realpath, stat } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import type { Environment } from './contract.ts'

/** The real path of an executable regular file; null for anything else. */
export async function executableAt(path: string): Promise<string | null> {
  try {
    const real = await realpath(path)
    await access(real, constants.X_OK)
    return (await stat(real)).isFile() ? real : null
  } catch {
    return null
  }
}

/** The first executable of that name on PATH. */
export async function onPath(name: string, env: Environment): Promise<string | null> {
  for (const dir of (env.PATH ?? '').split(delimiter)) {
    const found = dir.startsWith('/') ? await executableAt(join(dir, name)) : null
    if (found !== null) return found
  }
  return null
}
