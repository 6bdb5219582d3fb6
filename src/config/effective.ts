import type { BusinessFile, SystemFile } from './schema.ts'

// The files' content with every default filled in, still in the files' words: what `config show` prints and what is resolved.

const IDLE_TIMEOUT = '2h'
const RUN_TIMEOUT = '8h'

export const fillSystem = (file: SystemFile, dataRoot: string) => ({ ...file, dataRoot })
export type EffectiveSystem = ReturnType<typeof fillSystem>

type RoleFile = BusinessFile['roles'][string]

/** The launching role waits for its founder: it has no idle and no run timeout unless the file says so. */
function fillRole(role: RoleFile, launches: boolean, model: string) {
  const { vars } = role
  const limits = {
    ...vars.limits,
    idleTimeout: vars.limits.idleTimeout ?? (launches ? 'none' : IDLE_TIMEOUT),
    runTimeout: vars.limits.runTimeout ?? (launches ? 'none' : RUN_TIMEOUT),
  }
  return { ...role, vars: { ...vars, model: vars.model ?? model, limits } }
}
export type EffectiveRole = ReturnType<typeof fillRole>

export function fillBusiness(file: BusinessFile, system: SystemFile) {
  const roles = Object.entries(file.roles).map(([name, role]) => [name, fillRole(role, name === file.launch.by, system.model)] as const)
  const seats = Object.fromEntries(Object.keys(file.roles).map((role) => [role, { role }]))
  return { ...file, roles: Object.fromEntries(roles), instances: { ...seats, ...file.instances } }
}
export type EffectiveBusiness = ReturnType<typeof fillBusiness>
