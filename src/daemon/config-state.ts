import { AppError } from '../core/errors.ts'
import { type LoadRequest, loadConfig } from '../config/load.ts'
import { familyOf, selectBusiness } from '../config/select.ts'
import type { BusinessConfig, Config, RoleConfig } from '../config/types.ts'
import type { LaunchConfig } from '../launch/ports.ts'
import type { Grant } from '../protocol/common.ts'
import type { Roster } from '../bus/ports.ts'

/** The configuration that serves now. A reload replaces it whole; an invalid file changes nothing. */
export interface ConfigState {
  readonly current: () => Config
  readonly business: () => BusinessConfig
  readonly roleOf: (instance: string) => RoleConfig
  readonly launchConfig: () => LaunchConfig
  readonly roster: () => Roster
  /** Reads the files again; the new one serves once `record` has written that it does. Throws `config-invalid`, or what `record` throws; the old one then goes on. */
  reload(record: (next: Config) => void): Promise<void>
}

interface Derived {
  readonly config: Config
  readonly business: BusinessConfig
  readonly launch: LaunchConfig
  readonly roster: Roster
}

function derive(config: Config, businessId: string): Derived {
  const business = selectBusiness(config, businessId)
  const roleOf = (instance: string): RoleConfig => {
    const seat = business.instances.get(instance)
    const role = seat === undefined ? undefined : business.roles[seat.role]
    if (role === undefined) throw new AppError('instance-not-found', `no instance is called ${JSON.stringify(instance)}`)
    return role
  }
  const seats = [...business.instances].map(([instance, { role }]) => {
    const { model, harness } = roleOf(instance)
    return [instance, { role, model, harness, family: familyOf(config.system, model) }] as const
  })
  const grants = new Map(Object.entries(business.roles).map(([name, role]) => [name, new Set<Grant>(role.grants)]))
  const instances = new Map(seats)
  return {
    config,
    business,
    launch: { system: config.system, business, instances, roleOf },
    roster: {
      business: business.id,
      founder: config.system.founder,
      launchBy: business.launch.by,
      instances,
      grants: (role) => grants.get(role) ?? new Set(),
      projects: Object.keys(business.projects),
    },
  }
}

export function createConfigState(loaded: Config, businessId: string, request: LoadRequest): ConfigState {
  let now = derive(loaded, businessId)
  return {
    current: () => now.config,
    business: () => now.business,
    roleOf: (instance) => now.launch.roleOf(instance),
    launchConfig: () => now.launch,
    roster: () => now.roster,
    async reload(record) {
      const next = derive(await loadConfig(request), businessId)
      const { dataRoot } = now.config.system
      if (next.config.system.dataRoot !== dataRoot) {
        throw new AppError('config-invalid', `dataRoot was ${dataRoot} when this bus host started; a reload cannot move it`, { hint: 'mosaic bus restart' })
      }
      record(next.config)
      now = next
    },
  }
}
