import { existsSync, lstatSync } from 'node:fs'
import { userInfo } from 'node:os'
import { messageOf } from '../core/errors.ts'
import { allInstalledUnits, type InstalledUnit } from '../service/installed.ts'
import { hasLinger } from '../service/places.ts'
import { unitCommands } from '../service/running.ts'
import { createSystemctl, isBooted } from '../service/systemctl.ts'
import { fail, type Finding, ok, warn } from './check.ts'
import { managerOf } from './install.ts'
import type { Patient } from './patient.ts'

const reinstall = ({ scope }: InstalledUnit): string => (scope === 'system' ? 'sudo mosaic service install --system' : 'mosaic service install --user')

/** A Node of a version manager is gone after its next upgrade, and the unit then fails with 203/EXEC. */
function checkPrograms(unit: InstalledUnit): Finding {
  const missing = unit.programs.filter((path) => !existsSync(path))
  const remedy = reinstall(unit)
  if (missing.length > 0)
    return fail({ name: unit.name, code: 'program-missing', message: `${unit.path} starts ${missing.join(', ')}, which is not there`, remedy })
  const manager = managerOf(unit.programs[0] ?? '')
  if (manager !== null)
    return warn({
      name: unit.name,
      code: 'program-missing',
      message: `it runs the Node of ${manager}, which moves at the next upgrade`,
      remedy: `after each upgrade of Node: ${remedy}`,
    })
  return ok(unit.name, unit.path)
}

function checkCredentials({ name, environmentFile }: InstalledUnit): Finding[] {
  if (environmentFile === null) return []
  try {
    const { mode } = lstatSync(environmentFile)
    if ((mode & 0o077) === 0) return [ok(name, environmentFile)]
    return [warn({ name, code: 'no-session-credential', message: `${environmentFile} can be read by others`, remedy: `chmod 600 ${environmentFile}` })]
  } catch (error) {
    return [warn({ name, code: 'no-session-credential', message: `${environmentFile} cannot be looked at: ${messageOf(error)}`, remedy: null })]
  }
}

function checkState(unit: InstalledUnit, { env }: Patient): Finding[] {
  if (!isBooted()) return []
  try {
    const { ActiveState, Result, StatusText } = createSystemctl(unit.scope, env).show(unit.name)
    if (ActiveState === 'failed') {
      const user = unit.scope === 'user' ? ' --user' : ''
      return [
        fail({ name: unit.name, code: 'host-not-running', message: `it has failed: ${String(Result)}`, remedy: `journalctl${user} -u ${unit.name} -n 50` }),
      ]
    }
    return [ok(unit.name, `${String(ActiveState)}${StatusText === undefined || StatusText === '' ? '' : `: ${StatusText}`}`)]
  } catch (error) {
    return [warn({ name: unit.name, code: 'host-not-running', message: messageOf(error), remedy: null })]
  }
}

function checkLinger({ scope, name }: InstalledUnit): Finding[] {
  if (scope === 'system' || !isBooted()) return []
  const user = userInfo().username
  if (hasLinger(user)) return [ok(name, 'lingers: it runs without a login')]
  return [warn({ name, code: 'host-not-running', message: `it ends when ${user} logs out`, remedy: `loginctl enable-linger ${user}` })]
}

/** A host beside its unit has none of that unit's environment, credentials and supervision, and keeps the unit from starting. `pids`: main processes of the units. Pure. */
export function judgeOutside(
  host: { readonly pid: number; readonly root: string } | null,
  units: readonly { readonly unit: InstalledUnit; readonly pid: number }[],
): Finding[] {
  const idle = units.find(({ pid }) => pid === 0)
  if (host === null || idle === undefined || units.some(({ pid }) => pid === host.pid)) return []
  const { scope, name } = idle.unit
  const message = `a bus host (pid ${String(host.pid)}) holds ${host.root} outside of ${name}, which cannot start beside it`
  return [warn({ name, code: 'host-running', message, remedy: `mosaic bus stop && ${unitCommands({ scope, name }).start}` })]
}

function checkOutside(units: readonly InstalledUnit[], { host, root, env }: Patient): Finding[] {
  if (host === null || !isBooted()) return []
  const pidOf = ({ scope, name }: InstalledUnit): number => Number(createSystemctl(scope, env).show(name).MainPID ?? 0)
  try {
    return judgeOutside(
      { pid: host.pid, root },
      units.filter(({ dataRoot }) => dataRoot === null || dataRoot === root).map((unit) => ({ unit, pid: pidOf(unit) })),
    )
  } catch {
    return [] // that systemctl does not answer is a finding of its own
  }
}

/** The units of bus hosts on this machine; that there is none is no fault. */
export function checkService(patient: Patient): Finding[] {
  const units = allInstalledUnits(patient)
  if (units.length === 0) {
    const how = isBooted() ? 'mosaic service install would make one' : 'systemd does not run this machine'
    return [ok('unit', `no unit is installed; ${how}`)]
  }
  const each = units.flatMap((unit) => [checkPrograms(unit), ...checkCredentials(unit), ...checkState(unit, patient), ...checkLinger(unit)])
  return [...each, ...checkOutside(units, patient)]
}
