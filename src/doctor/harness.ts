import { accessSync, constants, statSync } from 'node:fs'
import type { BusinessConfig, Config, CredentialConfig } from '../config/types.ts'
import { availabilityOf } from '../harness/availability.ts'
import { createVersions } from '../harness/version.ts'
import { fail, type Finding, ok, warn } from './check.ts'
import { readUnitEnvironment } from './environment-file.ts'
import type { Patient } from './patient.ts'

interface Use {
  readonly harness: string
  readonly roles: readonly string[]
}

/** The harnesses that roles name, and which do. */
export function usesOf({ businesses }: Config): Use[] {
  const uses = new Map<string, string[]>()
  for (const { id, roles } of businesses.values())
    for (const [role, { harness }] of Object.entries(roles)) uses.set(harness, [...(uses.get(harness) ?? []), `${id}/${role}`])
  return [...uses].map(([harness, roles]) => ({ harness, roles }))
}

/** The variables that a bus host has, or would have. */
interface HostVariables {
  readonly variables: NodeJS.ProcessEnv
  /** Where they were found, in words. */
  readonly from: string
  /** What is missing there may be in a file that only root reads: no more than a warning. */
  readonly missing: typeof fail
}

/** A host that runs has what it has; one that will be started gets this shell's, or what its unit reads from a file. */
export function hostVariables({ host, hostEnv, env, home }: Patient): HostVariables {
  if (host !== null) return { variables: hostEnv, from: `the bus host (pid ${String(host.pid)})`, missing: fail }
  const { variables, unreadable } = readUnitEnvironment({ env, home })
  const closed = unreadable.length === 0 ? '' : `; not in ${unreadable.join(', ')}, which only root can read`
  return { variables: { ...variables, ...env }, from: `this shell and the unit${closed}`, missing: unreadable.length === 0 ? fail : warn }
}

async function checkUse(host: HostVariables, config: Config, { harness, roles }: Use): Promise<Finding> {
  const available = await availabilityOf({ versionOf: createVersions() }, harness, config.system.harnesses[harness] ?? { bin: null }, host.variables)
  const name = harness
  const whose = `(${roles.join(', ')})`
  if (available.ok) {
    const { bin, version } = available.located
    return ok(name, bin === null ? `ships with mosaic ${whose}` : `${bin}, ${version ?? 'which says no version'} ${whose}`)
  }
  const { code, why } = available
  const message = `${why} ${whose}; looked in ${host.from}`
  if (code === 'harness-missing') {
    const remedy = `install it, name it in system.yaml (harnesses: { ${harness}: { bin: PATH } }), or give the role another harness (vars.harness)`
    return fail({ name, code, message, remedy })
  }
  const remedy =
    "set it for the bus host and start that again: in the unit's EnvironmentFile (mosaic service install makes one), or in the shell of mosaic bus start"
  return host.missing({ name, code, message, remedy })
}

const isReadable = (path: string): boolean => {
  try {
    accessSync(path, constants.R_OK)
    return statSync(path).isFile()
  } catch {
    return false
  }
}

const WEEK_MS = 7 * 86_400_000

function judgeExpiry(name: string, expires: string | null, nowMs: number): Finding | null {
  const leftMs = expires === null ? Number.POSITIVE_INFINITY : Date.parse(expires) - nowMs
  const remedy = 'make a new one where it came from, and set expires to its date'
  if (leftMs <= 0) return fail({ name, code: 'no-session-credential', message: `it expired: ${String(expires)}`, remedy })
  if (leftMs < WEEK_MS) return warn({ name, code: 'no-session-credential', message: `it expires soon: ${String(expires)}`, remedy })
  return null
}

function checkCredential(host: HostVariables, name: string, { env: variable, file, expires }: CredentialConfig): Finding {
  const code = 'no-session-credential'
  if (variable !== null && (host.variables[variable] ?? '') === '')
    return host.missing({ name, code, message: `${variable} is not set; looked in ${host.from}`, remedy: `set ${variable} where the bus host is started` })
  if (file !== null && !isReadable(file))
    return fail({ name, code, message: `${file} is no file that can be read`, remedy: `write the credential there: install -m 600 /dev/stdin ${file}` })
  const late = judgeExpiry(name, expires, Date.now())
  if (late !== null) return late
  const open = file !== null && (statSync(file).mode & 0o077) !== 0
  return open
    ? warn({ name, code, message: `${file} can be read by others`, remedy: `chmod 600 ${file}` })
    : ok(name, variable === null ? String(file) : `${variable} is set`)
}

const credentialsOf = (host: HostVariables, { id, roles }: BusinessConfig): Finding[] =>
  Object.entries(roles).flatMap(([role, { credentials }]) =>
    Object.entries(credentials).map(([name, reference]) => checkCredential(host, `${id}/${role}.${name}`, reference)),
  )

export async function checkHarness(patient: Patient): Promise<Finding[]> {
  const { config } = patient
  if (config === null)
    return [warn({ name: 'roles', code: 'config-invalid', message: 'without a configuration there are no roles to look at', remedy: 'mosaic doctor config' })]
  const host = hostVariables(patient)
  const programs = await Promise.all(usesOf(config).map((use) => checkUse(host, config, use)))
  return [...programs, ...[...config.businesses.values()].flatMap((business) => credentialsOf(host, business))]
}
