import { readText } from './machine.ts'
import type { Patient } from './patient.ts'
import { findUnits } from './units.ts'

/** systemd.exec(5): NAME=value a line, quotes around a value are taken off. */
function parseEnvironmentFile(text: string): Record<string, string> {
  const pairs = [...text.matchAll(/^\s*([A-Za-z_]\w*)=(.*)$/gm)]
  return Object.fromEntries(pairs.map(([, name = '', value = '']) => [name, value.trim().replace(/^(["'])(.*)\1$/, '$2')]))
}

/** What the units of this user would give a bus host; a file that only root reads counts as empty. */
export function readEnvironmentFile(patient: Pick<Patient, 'home' | 'env'>): Record<string, string> {
  const files = findUnits(patient).flatMap(({ environmentFile }) => environmentFile ?? [])
  return Object.assign({}, ...files.map((path) => parseEnvironmentFile(readText(path) ?? ''))) as Record<string, string>
}
