import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The folder that holds package.json, from the sources and from dist alike. */
export function packageRoot(from: string = fileURLToPath(import.meta.url)): string {
  for (let dir = dirname(from); ; dir = dirname(dir)) {
    if (existsSync(join(dir, 'package.json'))) return dir
    if (dir === dirname(dir)) throw new Error(`no package.json above ${from}`)
  }
}

interface Package {
  readonly version: string
}

/** Of this program, as package.json says. */
export const readVersion = (): string => (JSON.parse(readFileSync(join(packageRoot(), 'package.json'), 'utf8')) as Package).version

/** A file that the build makes. */
export const builtFile = (name: string): string => join(packageRoot(), 'dist', name)
