import { existsSync } from 'node:fs'
import { allInstalledUnits } from '../service/installed.ts'
import { readText } from './machine.ts'
import type { Patient } from './patient.ts'

interface UnitEnvironment {
  readonly variables: Readonly<Record<string, string>>
  /** Files that are there and that only root can read. */
  readonly unreadable: readonly string[]
}

/** systemd.exec(5): NAME=value a line, quotes around a value are taken off. */
function parseEnvironmentFile(text: string): Record<string, string> {
  const pairs = [...text.matchAll(/^\s*([A-Za-z_]\w*)=(.*)$/gm)]
  return Object.fromEntries(pairs.map(([, name = '', value = '']) => [name, value.trim().replace(/^(["'])(.*)\1$/, '$2')]))
}

/** What the units of this machine would give a bus host. */
export function readUnitEnvironment(patient: Pick<Patient, 'home' | 'env'>): UnitEnvironment {
  const files = allInstalledUnits(patient).flatMap(({ environmentFile }) => environmentFile ?? [])
  const read = files.map((path) => ({ path, text: readText(path) }))
  return {
    variables: Object.assign({}, ...read.map(({ text }) => parseEnvironmentFile(text ?? ''))) as Record<string, string>,
    unreadable: read.flatMap(({ path, text }) => (text === null && existsSync(path) ? [path] : [])),
  }
}
