import { fstatSync, readFileSync, readlinkSync, statSync } from 'node:fs'
import { messageOf } from '../core/errors.ts'
import { statusOf } from '../core/proc.ts'
import { DEV_MOUNTS } from './policy.ts'
import type { SandboxPlan } from './plan.ts'
import { destOf, type Step } from './steps.ts'

export interface Mount {
  readonly at: string
  readonly options: readonly string[]
  readonly type: string
}

const unescape = (path: string): string => path.replaceAll(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)))

/** proc_pid_mountinfo(5). Paths are bytes, so they are read and compared as latin1. */
export function parseMounts(mountinfo: string): Mount[] {
  return mountinfo
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => {
      const fields = line.split(' ')
      return { at: unescape(fields[4] ?? ''), options: (fields[5] ?? '').split(','), type: fields[fields.indexOf('-') + 1] ?? '' }
    })
}

interface Expected {
  readonly readOnly: boolean
  /** May the host's own mounts below it show inside? */
  readonly tree: boolean
  readonly type: string | null
}

const TYPES: Partial<Record<Step['kind'], string>> = { tmpfs: 'tmpfs', data: 'tmpfs', proc: 'proc', dev: 'tmpfs' }

const bytes = (path: string): string => Buffer.from(path).toString('latin1')

/** The mounts of a plan by their place, in its order: a later read-only remount changes an earlier one. */
export function expectedMounts(plan: SandboxPlan): ReadonlyMap<string, Expected> {
  const mounts = new Map<string, Expected>([['/', { readOnly: false, tree: false, type: 'tmpfs' }]])
  for (const step of plan.steps) {
    const at = bytes(destOf(step))
    const before = mounts.get(at)
    if (step.kind === 'link') continue
    if (step.kind === 'read-only') mounts.set(at, { tree: false, type: null, ...before, readOnly: true })
    else {
      const readOnly = 'readOnly' in step ? step.readOnly : step.kind === 'data'
      mounts.set(at, { readOnly, tree: 'readOnly' in step && step.readOnly, type: TYPES[step.kind] ?? null })
    }
  }
  for (const at of DEV_MOUNTS) mounts.set(at, { readOnly: false, tree: false, type: null })
  return mounts
}

const isDevice = (at: string): boolean => DEV_MOUNTS.includes(at)

function mountDifference(mount: Mount, expected: ReadonlyMap<string, Expected>): string | null {
  const { at, options } = mount
  const wanted = expected.get(at)
  const host = wanted ?? [...expected].find(([path, { tree }]) => tree && at.startsWith(`${path}/`))?.[1]
  if (host === undefined) return `${at} is mounted and not planned`
  // systemd's PrivateDevices makes the mount of a device read-only, which keeps nobody from writing to the device
  if (host.readOnly !== options.includes('ro') && !isDevice(at)) return `${at} is ${host.readOnly ? 'writable' : 'read-only'}`
  if (!options.includes('nosuid')) return `${at} is mounted without nosuid`
  if (!options.includes('nodev') && !isDevice(at)) return `${at} is mounted without nodev`
  const type = wanted?.type ?? mount.type
  if (type !== mount.type) return `${at} is ${mount.type}, not ${type}`
  return null
}

/** What the mounts are that the plan does not say, in words; empty when they are the plan's. */
export function mountDifferences(mounts: readonly Mount[], plan: SandboxPlan): string[] {
  const expected = expectedMounts(plan)
  const present = new Set(mounts.map(({ at }) => at))
  const absent = [...expected.keys()].filter((at) => !present.has(at)).map((at) => `${at} is not mounted`)
  // of several mounts at one place the last is what shows
  const shown = [...new Map(mounts.map((mount) => [mount.at, mount])).values()]
  return [...absent, ...shown.map((mount) => mountDifference(mount, expected)).filter((difference) => difference !== null)]
}

const NAMESPACES = ['user', 'mnt', 'pid', 'ipc', 'uts', 'net', 'cgroup'] as const

function namespaceDifferences(pid: string, network: SandboxPlan['network']): string[] {
  return NAMESPACES.flatMap((name) => {
    const shared = readlinkSync(`/proc/${pid}/ns/${name}`) === readlinkSync(`/proc/self/ns/${name}`)
    const mayBe = name === 'net' && network === 'host'
    return shared === mayBe ? [] : [`its ${name} namespace is ${shared ? "the host's" : 'its own'}`]
  })
}

const CAPABILITIES = ['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb'] as const
export const isZero = (mask: string | undefined): boolean => mask !== undefined && /^0+$/.test(mask)

function privilegeDifferences(pid: number): string[] {
  const status = statusOf(pid)
  const capable = CAPABILITIES.filter((name) => !isZero(status[name])).map((name) => `${name} is ${status[name] ?? 'unknown'}`)
  return status.NoNewPrivs === '1' ? capable : [...capable, 'NoNewPrivs is off']
}

function mapDifferences(pid: string, { uid, gid }: SandboxPlan): string[] {
  const wanted = { uid_map: uid, gid_map: gid }
  return Object.entries(wanted).flatMap(([name, id]) => {
    const map = readFileSync(`/proc/${pid}/${name}`, 'utf8').trim().split(/\s+/).join(' ')
    return map === `${String(id)} ${String(id)} 1` ? [] : [`its ${name} is ${map}`]
  })
}

/** Is what lies at each pinned path inside the very thing that was pinned? */
function identityDifferences(pid: string, plan: SandboxPlan): string[] {
  return plan.steps.flatMap((step) => {
    if (step.kind !== 'pinned') return []
    const pin = fstatSync(step.bind.fd, { bigint: true })
    const inside = statSync(`/proc/${pid}/root${step.bind.path}`, { bigint: true })
    return pin.dev === inside.dev && pin.ino === inside.ino ? [] : [`${step.bind.path} is not what was pinned`]
  })
}

/** Compares pid 1 of a sandbox that has settled with its plan: every difference, in words. An unprivileged host may read all of it of its own. */
export function sandboxDifferences(initPid: number, plan: SandboxPlan): string[] {
  const pid = String(initPid)
  try {
    return [
      ...mountDifferences(parseMounts(readFileSync(`/proc/${pid}/mountinfo`, 'latin1')), plan),
      ...namespaceDifferences(pid, plan.network),
      ...privilegeDifferences(initPid),
      ...mapDifferences(pid, plan),
      ...identityDifferences(pid, plan),
    ]
  } catch (error) {
    return [`it cannot be read: ${messageOf(error)}`]
  }
}
