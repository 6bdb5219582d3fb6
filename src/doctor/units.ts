import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { isUnitName, unitDir } from '../service/places.ts'
import { DATA_ROOT_KEY, type Scope } from '../service/unit.ts'
import { readText } from './machine.ts'
import type { Patient } from './patient.ts'

export interface FoundUnit {
  readonly scope: Scope
  readonly name: string
  readonly path: string
  /** The programs of ExecStart: Node and our bin file. */
  readonly programs: readonly string[]
  readonly environmentFile: string | null
  readonly user: string | null
  /** null: the unit does not say. */
  readonly dataRoot: string | null
}

const unquote = (word: string): string => (word.startsWith('"') ? word.slice(1, -1).replace(/\\(.)/g, '$1') : word).replaceAll('%%', '%').replaceAll('$$', '$')

function parseUnit(text: string): Pick<FoundUnit, 'programs' | 'environmentFile' | 'user' | 'dataRoot'> {
  const valueOf = (key: string): string | null => new RegExp(`^${key}=(.*)$`, 'm').exec(text)?.[1] ?? null
  const words = (valueOf('ExecStart') ?? '').match(/"(?:\\.|[^"\\])*"|\S+/g) ?? []
  return {
    programs: words.slice(0, 2).map(unquote),
    environmentFile: valueOf('EnvironmentFile')?.replace(/^-/, '').replaceAll('%%', '%') ?? null,
    user: valueOf('User'),
    dataRoot: valueOf(DATA_ROOT_KEY),
  }
}

function unitsIn(scope: Scope, patient: Pick<Patient, 'home' | 'env'>): FoundUnit[] {
  const dir = unitDir(scope, patient)
  let names: string[]
  try {
    names = readdirSync(dir).filter(isUnitName)
  } catch {
    return []
  }
  return names.flatMap((name) => {
    const text = readText(join(dir, name))
    return text === null ? [] : [{ scope, name, path: join(dir, name), ...parseUnit(text) }]
  })
}

/** The units of bus hosts on this machine that this user can see. */
export const findUnits = (patient: Pick<Patient, 'home' | 'env'>): FoundUnit[] => (['system', 'user'] as const).flatMap((scope) => unitsIn(scope, patient))
