import { AppError } from '../core/errors.ts'
import { createSystemctl, isBooted } from './systemctl.ts'
import { isUnitName } from './places.ts'
import type { Scope } from './unit.ts'

/** The unit that runs a bus host. */
export interface RunningUnit {
  readonly scope: Scope
  readonly name: string
}

/** The innermost service of the text of /proc/PID/cgroup, which may be that of a terminal as well. cgroups(7). Pure. */
export function serviceOf(text: string): RunningUnit | null {
  // of version 1, the hierarchy that systemd keeps is named after it
  const path = /^(?:0:|\d+:name=systemd):(.*)$/m.exec(text)?.[1] ?? ''
  const parts = path.split('/')
  const name = parts.findLast((part) => part.endsWith('.service'))
  if (name === undefined || /^user@\d+\.service$/.test(name)) return null
  return { name, scope: parts.some((part) => /^user@\d+\.service$/.test(part)) ? 'user' : 'system' }
}

/** Does that unit run this process as its main one? Without systemd's word its name has to do. */
function isMain({ scope, name }: RunningUnit, pid: number, env: NodeJS.ProcessEnv): boolean {
  if (!isBooted()) return false
  try {
    return createSystemctl(scope, env).show(name).MainPID === String(pid)
  } catch {
    return isUnitName(name)
  }
}

/** The unit whose main process this is; null: none, also where it merely runs in a terminal that systemd started. `cgroup`: text of /proc/PID/cgroup. */
export function unitOf(pid: number, cgroup: string, env: NodeJS.ProcessEnv): RunningUnit | null {
  const unit = serviceOf(cgroup)
  return unit !== null && isMain(unit, pid, env) ? unit : null
}

const userFlag = ({ scope }: RunningUnit): string => (scope === 'user' ? ' --user' : '')

/** The commands that a person types for a unit. */
export const unitCommands = (unit: RunningUnit): { readonly restart: string; readonly start: string; readonly logs: string } => ({
  restart: `${unit.scope === 'system' ? 'sudo ' : ''}systemctl${userFlag(unit)} restart ${unit.name}`,
  start: `${unit.scope === 'system' ? 'sudo ' : ''}systemctl${userFlag(unit)} start ${unit.name}`,
  logs: `journalctl${userFlag(unit)} -u ${unit.name}`,
})

/** Throws `not-permitted` unless we may start it again. */
export function assertMayRestart(unit: RunningUnit): void {
  if (unit.scope === 'user' || process.getuid?.() === 0) return
  throw new AppError('not-permitted', `the bus host is run by ${unit.name}, which only root can restart`, { hint: unitCommands(unit).restart })
}
