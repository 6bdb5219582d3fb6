import { access, realpath } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import type { Program } from './plan.ts'
import { INSIDE, SYSTEM_PROGRAMS } from './policy.ts'
import { conflictOf, type Forbidden } from './sources.ts'

/** The ordinary Node as sandboxed programs find it. */
export interface NodeProgram {
  /** Its path inside. */
  readonly path: string
  readonly programs: readonly Program[]
  readonly pathDirs: readonly string[]
}

const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  )

/** nvm, fnm, volta, asdf and tarballs: PREFIX/bin/node beside PREFIX/lib/node_modules. Not where the prefix holds more than Node, as ~/.local does. */
async function prefixOf(program: string, forbidden: Forbidden): Promise<string | null> {
  const prefix = dirname(dirname(program))
  const isInstall = basename(dirname(program)) === 'bin' && (await exists(join(prefix, 'lib', 'node_modules', 'npm')))
  return isInstall && conflictOf(prefix, forbidden) === null ? prefix : null
}

/** Below /usr it is visible as it is; else its install prefix, or the one file, gets a fixed place. */
export async function locateNode(forbidden: Forbidden, execPath: string = process.execPath): Promise<NodeProgram> {
  const program = await realpath(execPath)
  if (program.startsWith(`${SYSTEM_PROGRAMS}/`)) return { path: program, programs: [], pathDirs: [dirname(program)] }
  const bin = join(INSIDE.nodePrefix, 'bin')
  const path = join(bin, 'node')
  const prefix = await prefixOf(program, forbidden)
  return { path, pathDirs: [bin], programs: [prefix === null ? { source: program, dest: path } : { source: prefix, dest: INSIDE.nodePrefix }] }
}
