import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { readIfThere } from './install.ts'
import { businessOf, isUnitName, unitDir } from './places.ts'
import { DATA_ROOT_KEY, MARKER, type Scope } from './unit.ts'

/** A unit of ours as its file has it. */
export interface InstalledUnit {
  readonly scope: Scope
  readonly name: string
  readonly path: string
  readonly business: string
  /** null: written before units said so. */
  readonly dataRoot: string | null
}

function namesIn(dir: string): string[] {
  try {
    return readdirSync(dir).filter(isUnitName).sort()
  } catch {
    return []
  }
}

function textOf(path: string): string | null {
  try {
    return readIfThere(path)
  } catch {
    return null // another user's
  }
}

/** The units of bus hosts that are installed in one manager, whatever the configuration says by now. */
export function installedUnits(scope: Scope, user: { readonly home: string; readonly env: NodeJS.ProcessEnv }): InstalledUnit[] {
  const dir = unitDir(scope, user)
  return namesIn(dir).flatMap((name) => {
    const path = join(dir, name)
    const text = textOf(path)
    if (text?.startsWith(MARKER) !== true) return []
    const dataRoot = new RegExp(`^${DATA_ROOT_KEY}=(.*)$`, 'm').exec(text)?.[1] ?? null
    return [{ scope, name, path, business: businessOf(name), dataRoot }]
  })
}
