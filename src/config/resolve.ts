import { parseDuration, parseSize } from '../core/duration.ts'
import type { EffectiveBusiness, EffectiveRole, EffectiveSystem } from './effective.ts'
import { expandHome } from './paths.ts'
import { promptPath } from './references.ts'
import type { BusinessConfig, CredentialConfig, RoleConfig, RoleLimits, SystemConfig } from './types.ts'

interface Roots {
  readonly configDir: string
  readonly home: string
}

/** The schema has let through durations and sizes only. */
function sure(value: number | undefined, text: string): number {
  if (value === undefined) throw new Error(`checked before: ${text}`)
  return value
}
const toMs = (text: string): number => sure(parseDuration(text), text)
const toBytes = (size: string | number): number => (typeof size === 'number' ? size : sure(parseSize(size), size))
const toMsOrNone = (text: string): number | null => (text === 'none' ? null : toMs(text))

/** Mapped values in an object without a prototype: names that come from agents are looked up in it. */
function mapValues<In, Out>(record: Readonly<Record<string, In>>, map: (value: In) => Out): Readonly<Record<string, Out>> {
  const mapped = Object.fromEntries(Object.entries(record).map(([key, value]) => [key, map(value)]))
  Object.setPrototypeOf(mapped, null)
  return mapped
}

export function resolveSystem(file: EffectiveSystem, home: string): SystemConfig {
  const { limits } = file
  const absolute = (path: string): string => expandHome(path, home)
  return {
    founder: file.founder,
    dataRoot: file.dataRoot,
    model: file.model,
    families: mapValues(file.families, (patterns) => patterns),
    harnesses: mapValues(file.harnesses, ({ bin, version, paths, models }) => ({
      bin: bin === undefined ? null : absolute(bin),
      version: version ?? null,
      paths: paths.map(absolute),
      models,
    })),
    keepRunsMs: toMs(file.keepRuns),
    bwrap: file.sandbox.bwrap === undefined ? null : absolute(file.sandbox.bwrap),
    limits: {
      prepareTimeoutMs: toMs(limits.prepareTimeout),
      brokerTries: limits.brokerTries,
      brokerRetryMs: toMs(limits.brokerRetry),
      pushBytes: toBytes(limits.pushBytes),
      pushUnpackedBytes: toBytes(limits.pushUnpacked),
      pushObjects: limits.pushObjects,
    },
  }
}

function resolveLimits(limits: EffectiveRole['vars']['limits']): RoleLimits {
  return {
    tools: limits.tools,
    memoryBytes: limits.memory === undefined ? null : toBytes(limits.memory),
    pids: limits.pids,
    cpus: limits.cpus ?? null,
    turnTimeoutMs: toMs(limits.turnTimeout),
    idleTimeoutMs: toMsOrNone(limits.idleTimeout),
    runTimeoutMs: toMsOrNone(limits.runTimeout),
    turnsPerHour: limits.turnsPerHour,
    enforce: limits.enforce,
  }
}

function resolveRole(role: EffectiveRole, { configDir, home }: Roots): RoleConfig {
  const toCredential = ({ env, file, expires }: EffectiveRole['credentials'][string]): CredentialConfig => ({
    env: env ?? null,
    file: file === undefined ? null : expandHome(file, home),
    expires: expires ?? null,
  })
  return {
    grants: [...new Set(role.grants)],
    harness: role.vars.harness,
    model: role.vars.model,
    limits: resolveLimits(role.vars.limits),
    prompt: role.prompt === undefined ? null : promptPath(configDir, home, role.prompt),
    network: role.network,
    networkReason: role.networkReason ?? null,
    env: mapValues(role.env, (value) => value),
    credentials: mapValues(role.credentials, toCredential),
  }
}

export function resolveBusiness(id: string, file: EffectiveBusiness, roots: Roots): BusinessConfig {
  const { by, instances, max } = file.launch
  return {
    id,
    projects: mapValues(file.projects, ({ root, branch, resources }) => ({ root: expandHome(root, roots.home), branch, resources })),
    roles: mapValues(file.roles, (role) => resolveRole(role, roots)),
    instances: new Map(Object.entries(file.instances)),
    launch: { by: by ?? null, instances: [...new Set(instances)], max: mapValues(max, (count) => count) },
  }
}
