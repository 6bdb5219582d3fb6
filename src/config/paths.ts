import { realpathSync } from 'node:fs'
import { basename, dirname, isAbsolute, join, resolve, sep } from 'node:path'

type Env = Readonly<Record<string, string | undefined>>

/** A path that needs no current directory: absolute, or under the home directory. */
export const isAnchored = (path: string): boolean => (isAbsolute(path) || path === '~' || path.startsWith('~/')) && !path.includes('\0')

/** `~` and `~/x` against this home; everything else as it is, made plain (`..` and double slashes resolved). */
export function expandHome(path: string, home: string): string {
  if (path === '~') return home
  return resolve(path.startsWith('~/') ? join(home, path.slice(2)) : path)
}

/** The XDG specification: a base directory that is not absolute is ignored. */
const baseDirectory = (value: string | undefined, fallback: string): string => (value !== undefined && isAbsolute(value) ? value : fallback)
const given = (value: string | undefined): value is string => value !== undefined && value !== ''

/** The config root: $MOSAIC_CONFIG, else $XDG_CONFIG_HOME/mosaic, else ~/.config/mosaic. */
export function resolveConfigDir(env: Env, home: string): string {
  if (given(env.MOSAIC_CONFIG)) return resolve(env.MOSAIC_CONFIG)
  return join(baseDirectory(env.XDG_CONFIG_HOME, join(home, '.config')), 'mosaic')
}

/** What said where the data root is. */
export type DataRootOrigin = '--data-root' | '$MOSAIC_DATA' | 'system.yaml' | 'default'

export interface DataRoot {
  readonly path: string
  readonly from: DataRootOrigin
}

/** --data-root, else $MOSAIC_DATA, else the system file's, else $XDG_DATA_HOME/mosaic (~/.local/share/mosaic). */
export function resolveDataRoot(
  request: { readonly home: string; readonly env: Env; readonly dataRoot?: string | undefined },
  configured: string | undefined,
): DataRoot {
  const { home, env } = request
  if (given(request.dataRoot)) return { path: resolve(request.dataRoot), from: '--data-root' }
  if (given(env.MOSAIC_DATA)) return { path: expandHome(env.MOSAIC_DATA, home), from: '$MOSAIC_DATA' }
  if (configured !== undefined) return { path: expandHome(configured, home), from: 'system.yaml' }
  return { path: join(baseDirectory(env.XDG_DATA_HOME, join(home, '.local', 'share')), 'mosaic'), from: 'default' }
}

/** The path with the links in its existing part followed, so that two names of one place compare equal. */
export function followLinks(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    const parent = dirname(path)
    return parent === path ? path : join(followLinks(parent), basename(path))
  }
}

const contains = (outer: string, inner: string): boolean => outer === inner || inner.startsWith(outer.endsWith(sep) ? outer : outer + sep)

/** Is one of two real paths the other, or in it? */
export const overlap = (one: string, other: string): boolean => contains(one, other) || contains(other, one)
