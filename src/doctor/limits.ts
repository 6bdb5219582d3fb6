import { accessSync, constants, readFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { CONTROLLER, ownCgroup } from '../sandbox/cgroup.ts'
import { fail, type Finding, ok, warn } from './check.ts'
import { readText } from './machine.ts'
import type { Patient } from './patient.ts'

interface Delegation {
  readonly dir: string | null
  readonly controllers: readonly string[]
}

const HOST_LEAF = 'host'

function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK)
    return true
  } catch {
    return false
  }
}

/** A bus host moves itself into a leaf; its sessions' leaves lie beside it. */
function delegation({ host }: Patient): Delegation {
  const own = ownCgroup(host?.cgroup ?? readFileSync('/proc/self/cgroup', 'utf8'), readFileSync('/proc/self/mountinfo', 'utf8'))
  const dir = own !== null && host !== null && basename(own) === HOST_LEAF ? dirname(own) : own
  if (dir === null || !isWritable(join(dir, 'cgroup.procs')) || !isWritable(join(dir, 'cgroup.subtree_control'))) return { dir, controllers: [] }
  const offered = readText(join(dir, 'cgroup.controllers'))?.split(' ') ?? []
  return { dir, controllers: Object.values(CONTROLLER).filter((name) => offered.includes(name)) }
}

/** Roles whose limits have to be kept by a cgroup, as `business/role`. */
const demanding = ({ config }: Patient): string[] =>
  [...(config?.businesses.values() ?? [])].flatMap(({ id, roles }) =>
    Object.entries(roles)
      .filter(([, { limits }]) => limits.enforce === 'required')
      .map(([role]) => `${id}/${role}`),
  )

const REMEDY =
  'run the bus host as a unit, which delegates a cgroup: mosaic service install (elsewhere: systemd-run --user --scope -p Delegate=yes mosaic bus start)'

/** cgroup delegation, as the bus host has it if one runs, else as this shell would give it. */
export function checkLimits(patient: Patient): Finding[] {
  const { dir, controllers } = delegation(patient)
  const whose = patient.host === null ? 'this shell' : `the bus host (pid ${String(patient.host.pid)})`
  const lacking = Object.values(CONTROLLER).filter((name) => !controllers.includes(name))
  if (lacking.length === 0) return [ok('cgroup', `${whose} may make cgroups with ${controllers.join(', ')} below ${String(dir)}`)]
  const kept =
    controllers.length === 0
      ? 'prlimit alone keeps memory (of each process) and pids, and nothing keeps cpus'
      : `nothing keeps ${lacking.join(', ')} for a session`
  const message = `${whose} may not make cgroups with ${lacking.join(', ')} (its own: ${dir ?? 'no cgroup v2'}): ${kept}`
  const roles = demanding(patient)
  if (roles.length === 0) return [warn({ name: 'cgroup', code: 'limits-unavailable', message, remedy: REMEDY })]
  const asked = `${message}; limits.enforce: required is set for ${roles.join(', ')}`
  // of a shell nothing follows for a bus host that systemd starts
  const judge = patient.host === null ? warn : fail
  return [judge({ name: 'cgroup', code: 'limits-unavailable', message: asked, remedy: REMEDY })]
}
