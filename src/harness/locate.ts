import { execFile } from 'node:child_process'
import { constants } from 'node:fs'
import { access, realpath, stat } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'
import type { Environment } from './contract.ts'

const VERSION_TIMEOUT_MS = 10_000
const run = promisify(execFile)

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

/** The first line that `BIN --version` prints; null when it fails, says nothing or takes too long. */
export async function versionOf(bin: string, env: Environment): Promise<string | null> {
  try {
    const { stdout } = await run(bin, ['--version'], { env: { PATH: env.PATH, HOME: env.HOME }, timeout: VERSION_TIMEOUT_MS, killSignal: 'SIGKILL' })
    const line = stdout.split('\n')[0]?.trim() ?? ''
    return line === '' ? null : line
  } catch {
    return null
  }
}
