import { existsSync, readFileSync, realpathSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { AppError, messageOf } from '../core/errors.ts'
import { nativeAddonPath } from '../core/kernel.ts'
import { builtFile, packageRoot } from '../core/paths.ts'
import { loadSqlite } from '../store/sqlite.ts'
import { fail, type Finding, ok, warn } from './check.ts'
import type { Patient } from './patient.ts'

const NEEDED = [20, 19] as const

/** `version`: process.versions.node. Pure. */
export function judgeNode(version: string, path: string): Finding {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  if (major < NEEDED[0] || (major === NEEDED[0] && minor < NEEDED[1])) {
    const remedy = 'install Node 20.19 or newer: https://nodejs.org, or npm install --prefix ~/.node20 node@20'
    return fail({ name: 'node', code: 'program-missing', message: `Node ${version} (${path}) is too old: 20.19 is needed`, remedy })
  }
  return ok('node', `Node ${version} (${path})`)
}

const MANAGERS: Readonly<Record<string, string>> = { '.nvm': 'nvm', fnm: 'fnm', '.volta': 'volta', '.asdf': 'asdf', '.nodenv': 'nodenv', mise: 'mise' }

/** Version managers put each Node in a place of its own, which is gone after the next upgrade: fine for sandboxes, not for a unit. */
export const managerOf = (path: string): string | null => path.split('/').flatMap((part) => MANAGERS[part] ?? [])[0] ?? null

/** Both are loaded: they are built for one Node, and another finds them unfit. */
function checkAddons(): Finding {
  try {
    nativeAddonPath()
    loadSqlite()
    return ok('addons', 'koffi and better-sqlite3 load')
  } catch (error) {
    const hint = error instanceof AppError ? error.hint : undefined
    const remedy = hint ?? `cd ${packageRoot()} && npm install koffi`
    return fail({
      name: 'addons',
      code: 'program-missing',
      message: hint === undefined ? `koffi does not load: ${messageOf(error)}` : messageOf(error),
      remedy,
    })
  }
}

const FILES = ['cli.mjs', 'runner.cjs', 'prepare.mjs']

function checkBuild(): Finding {
  const missing = FILES.map(builtFile).filter((path) => !existsSync(path))
  if (missing.length === 0) return ok('build', builtFile(''))
  return fail({ name: 'build', code: 'program-missing', message: `${missing.join(', ')} is missing`, remedy: `npm run build --prefix ${packageRoot()}` })
}

const realOf = (path: string): string | null => {
  try {
    return realpathSync(path)
  } catch {
    return null
  }
}

/** Ours is the bin file of this package, or of another copy of it (a clone beside an installation). */
function isOurs(path: string): boolean {
  if (path === join(packageRoot(), 'bin', 'mosaic.js')) return true
  try {
    const text = readFileSync(path, 'utf8').slice(0, 4096)
    return text.includes('mosaic.js') || text.includes('mosaic needs Node')
  } catch {
    return false
  }
}

/** Other products are called mosaic, too; agents and units must not get one of those. */
function checkName(pathVariable: string | undefined): Finding {
  const dirs = (pathVariable ?? '').split(delimiter).filter((dir) => dir.startsWith('/'))
  const found = dirs.map((dir) => join(dir, 'mosaic')).find((path) => existsSync(path))
  const real = found === undefined ? null : realOf(found)
  const bin = join(packageRoot(), 'bin', 'mosaic.js')
  if (found === undefined || real === null)
    return warn({ name: 'command', code: 'program-missing', message: 'no mosaic is on PATH', remedy: `ln -s ${bin} ~/.local/bin/mosaic` })
  if (isOurs(real)) return ok('command', real === found ? found : `${found} is ${real}`)
  const remedy = `put ours before it on PATH: ln -s ${bin} ~/.local/bin/mosaic`
  return warn({ name: 'command', code: 'program-missing', message: `${found} is another product of that name (${real})`, remedy })
}

export function checkInstall({ env, version }: Patient): Finding[] {
  return [ok('mosaic', `${version} (${packageRoot()})`), judgeNode(process.versions.node, process.execPath), checkAddons(), checkBuild(), checkName(env.PATH)]
}
