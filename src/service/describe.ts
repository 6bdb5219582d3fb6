import { realpathSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { loadConfig } from '../config/load.ts'
import { followLinks, resolveConfigDir } from '../config/paths.ts'
import { selectBusiness } from '../config/select.ts'
import { type Account, findAccount } from '../core/account.ts'
import { AppError } from '../core/errors.ts'
import { isId } from '../core/ids.ts'
import { packageRoot } from '../core/paths.ts'
import { installedUnits } from './installed.ts'
import { type UnitPlaces, unitPlaces } from './places.ts'
import { type Scope, toUnit, type UnitInput } from './unit.ts'

export interface DescribeRequest {
  readonly scope: Scope
  readonly business: string | undefined
  readonly pm: boolean
  /** Whose bus host it is; by default who calls, or called sudo. */
  readonly founder: string | undefined
  readonly env: NodeJS.ProcessEnv
  readonly home: string
  /** The value of --data-root. */
  readonly dataRoot: string | undefined
}

/** A unit as these options describe it, and where it belongs. */
export interface Described {
  readonly account: Account
  readonly places: UnitPlaces
  readonly input: UnitInput
  readonly text: string
}

function founderOf({ founder, env }: DescribeRequest): Account {
  const uid = process.getuid?.() ?? -1
  const name = founder ?? (uid === 0 ? env.SUDO_USER : String(uid))
  const hint = 'mosaic service install --system --as NAME'
  if (name === undefined) throw new AppError('runs-as-root', 'the bus host never runs as root', { hint })
  const account = findAccount(name)
  if (account.uid === 0) throw new AppError('runs-as-root', 'the bus host never runs as root, and this would be its user', { hint })
  return account
}

const PLACES = ['MOSAIC_CONFIG', 'MOSAIC_DATA', 'XDG_CONFIG_HOME', 'XDG_DATA_HOME'] as const
/** Of somebody else's environment (root's, under sudo) only what was meant for mosaic counts. */
const MEANT = ['MOSAIC_CONFIG', 'MOSAIC_DATA'] as const

function pick(env: NodeJS.ProcessEnv, names: readonly string[]): Record<string, string> {
  const pairs = names.map((name): [string, string] => [name, env[name] ?? ''])
  return Object.fromEntries(pairs.filter(([, value]) => value !== ''))
}

/** A PATH that does not depend on who installs: this Node's place, the founder's own programs, the machine's. */
const pathOf = (node: string, home: string): string => [...new Set([dirname(node), `${home}/.local/bin`, '/usr/local/bin', '/usr/bin', '/bin'])].join(':')

interface Owner {
  readonly account: Account
  readonly home: string
  readonly env: Readonly<Record<string, string>>
}

function ownerOf(request: DescribeRequest): Owner {
  const account = founderOf(request)
  const isSelf = account.uid === process.getuid?.()
  return { account, home: isSelf ? request.home : account.home, env: pick(request.env, isSelf ? PLACES : MEANT) }
}

/**
 * Where a unit is that may be installed: of the business that is named, else of the only unit that there is, else of the only business. The configuration is asked
 * last: a unit can be looked at and removed when that is broken or gone. Throws `business-ambiguous`, and what loading the configuration throws.
 */
export async function locateUnit(request: DescribeRequest): Promise<Pick<Described, 'account' | 'places'>> {
  const { scope, dataRoot } = request
  const { account, home, env } = ownerOf(request)
  const installed = installedUnits(scope, { home, env }).map(({ business }) => business)
  if (request.business === undefined && installed.length > 1)
    throw new AppError('business-ambiguous', `more than one unit is installed: ${installed.join(', ')}`, { hint: `--business ${installed[0] ?? 'ID'}` })
  const fromConfig = async (): Promise<string> =>
    selectBusiness(await loadConfig({ configDir: resolveConfigDir(env, home), home, env, dataRoot }), undefined).id
  const business = request.business ?? installed[0] ?? (await fromConfig())
  if (!isId(business)) throw new AppError('business-not-found', `${JSON.stringify(business)} is no id of a business`, { hint: 'mosaic config check' })
  return { account, places: unitPlaces(scope, business, { home, env }) }
}

/** One bus host serves a data root, so a second unit for it could never start. Throws `config-exists`. */
function assertAlone({ scope, business, dataRoot }: UnitInput, { home, env }: Owner): void {
  const other = installedUnits(scope, { home, env }).find((unit) => unit.dataRoot === dataRoot && unit.business !== business)
  if (other === undefined) return
  throw new AppError('config-exists', `${other.path} serves ${dataRoot} already, and one bus host serves a data root`, {
    hint: `mosaic service install --${scope} --business ${business} --data-root DIR`,
  })
}

/** Throws what loading the configuration throws, `user-not-found`, `runs-as-root`; `config-exists` for a data root that another unit serves. */
export async function describeUnit(request: DescribeRequest): Promise<Described> {
  const { scope, pm, dataRoot } = request
  const owner = ownerOf(request)
  const { account, home, env } = owner
  const config = await loadConfig({ configDir: resolveConfigDir(env, home), home, env, dataRoot })
  const business = selectBusiness(config, request.business).id
  const places = unitPlaces(scope, business, { home, env })
  const node = realpathSync(process.execPath)
  const input: UnitInput = {
    ...{ scope, business, pm, node },
    founder: account.name,
    program: join(packageRoot(), 'bin', 'mosaic.js'),
    dataRoot: followLinks(config.system.dataRoot),
    dataRootOption: dataRoot === undefined ? null : resolve(dataRoot),
    credentialsFile: places.credentials,
    env: { PATH: pathOf(node, home), ...env },
  }
  assertAlone(input, owner)
  return { account, places, input, text: toUnit(input) }
}
