import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { resolveConfigDir } from '../config/paths.ts'
import type { Scope } from './unit.ts'

/** Where a unit and its credentials lie. */
export interface UnitPlaces {
  readonly name: string
  readonly unit: string
  readonly credentials: string
}

const PREFIX = 'mosaic-'
const SUFFIX = '.service'

export const isUnitName = (name: string): boolean => name.startsWith(PREFIX) && name.endsWith(SUFFIX)
export const businessOf = (unitName: string): string => unitName.slice(PREFIX.length, -SUFFIX.length)

interface User {
  readonly home: string
  readonly env: NodeJS.ProcessEnv
}

/** systemd.unit(5): where an administrator's and a user's own units are looked for. */
export function unitDir(scope: Scope, { home, env }: User): string {
  if (scope === 'system') return '/etc/systemd/system'
  const base = env.XDG_CONFIG_HOME
  return join(base?.startsWith('/') === true ? base : join(home, '.config'), 'systemd', 'user')
}

export function unitPlaces(scope: Scope, business: string, user: User): UnitPlaces {
  const name = `${PREFIX}${business}${SUFFIX}`
  const credentials = scope === 'system' ? '/etc/mosaic' : resolveConfigDir(user.env, user.home)
  return { name, unit: join(unitDir(scope, user), name), credentials: join(credentials, `${business}.env`) }
}

/** Does the user's manager run without a login? loginctl(1) */
export const hasLinger = (user: string): boolean => existsSync(join('/var/lib/systemd/linger', user))
