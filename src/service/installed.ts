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
  /** The programs of ExecStart: Node and our bin file. */
  readonly programs: readonly string[]
  readonly environmentFile: string | null
}

const unquote = (word: string): string => (word.startsWith('"') ? word.slice(1, -1).replace(/\\(.)/g, '$1') : word).replaceAll('%%', '%').replaceAll('$$', '$')

function parseUnit(text: string): Pick<InstalledUnit, 'dataRoot' | 'programs' | 'environmentFile'> {
  const valueOf = (key: string): string | null => new RegExp(`^${key}=(.*)$`, 'm').exec(text)?.[1] ?? null
  const words = (valueOf('ExecStart') ?? '').match(/"(?:\\.|[^"\\])*"|\S+/g) ?? []
  return {
    dataRoot: valueOf(DATA_ROOT_KEY),
    programs: words.slice(0, 2).map(unquote),
    environmentFile: valueOf('EnvironmentFile')?.replace(/^-/, '').replaceAll('%%', '%') ?? null,
  }
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
    return text?.startsWith(MARKER) === true ? [{ scope, name, path, business: businessOf(name), ...parseUnit(text) }] : []
  })
}

/** Those of both managers. */
export const allInstalledUnits = (user: Parameters<typeof installedUnits>[1]): InstalledUnit[] =>
  (['system', 'user'] as const).flatMap((scope) => installedUnits(scope, user))
