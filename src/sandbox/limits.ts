import { readFileSync } from 'node:fs'
import { AppError, messageOf } from '../core/errors.ts'
import { prlimit } from '../core/kernel.ts'
import type { Log } from '../core/log.ts'
import type { ProcessId } from '../core/proc.ts'
import { type CgroupLeaf, type CgroupParent, CONTROLLER, openLeaf } from './cgroup.ts'
import type { Limits } from './plan.ts'

export type LimitName = keyof typeof CONTROLLER

/** How each limit that is set is kept; `none`: not at all on this machine. A limit that is not set is left out. */
export type EnforcedLimits = Readonly<Partial<Record<LimitName, 'cgroup' | 'prlimit' | 'none'>>>

export interface AppliedLimits {
  readonly enforced: EnforcedLimits
  readonly leaf: CgroupLeaf | null
}

const NAMES: readonly LimitName[] = ['memoryBytes', 'pids', 'cpus']
const OPEN_FILES = 65_536

/** RLIMIT_NPROC counts per user namespace: a limit on the whole session without a cgroup. RLIMIT_DATA is of each process alone. Nothing stands in for cpus. */
const WITHOUT_CGROUP = { memoryBytes: 'prlimit', pids: 'prlimit', cpus: 'none' } as const

/** What this machine can keep of these limits. Pure. */
export function enforceable(limits: Limits, cgroup: CgroupParent | null): EnforcedLimits {
  const set = NAMES.filter((name) => limits[name] !== null)
  return Object.fromEntries(set.map((name) => [name, cgroup?.controllers.includes(CONTROLLER[name]) === true ? 'cgroup' : WITHOUT_CGROUP[name]]))
}

/** Throws `limits-unavailable` when the role requires its limits and a cgroup cannot keep each of them; for the gate, before anything starts. */
export function assertEnforceable(limits: Limits, cgroup: CgroupParent | null): void {
  if (limits.enforce !== 'required') return
  const lacking = Object.entries(enforceable(limits, cgroup)).filter(([, how]) => how !== 'cgroup')
  if (cgroup !== null && lacking.length === 0) return
  const names = lacking.length === 0 ? 'any limits' : lacking.map(([name]) => name).join(', ')
  throw new AppError('limits-unavailable', `no writable cgroup keeps ${names}, which the role requires`, { hint: 'mosaic doctor limits' })
}

function hardOpenFiles(pid: number): number {
  const limit = /^Max open files\s+\S+\s+(\S+)/m.exec(readFileSync(`/proc/${String(pid)}/limits`, 'utf8'))?.[1]
  return limit === undefined || limit === 'unlimited' ? Number.POSITIVE_INFINITY : Number(limit)
}

/** What prlimit alone keeps, of a pid 1 whose command has not started yet; core dumps off and open files bounded always. */
export function applyPrlimit(pid: number, { memoryBytes, pids }: Limits): void {
  const nofile = Math.min(OPEN_FILES, hardOpenFiles(pid))
  prlimit(pid, { core: 0, nofile, ...(memoryBytes === null ? {} : { data: memoryBytes }), ...(pids === null ? {} : { nproc: pids }) })
}

async function enterLeaf(parent: CgroupParent, init: ProcessId, name: string, limits: Limits): Promise<CgroupLeaf> {
  const leaf = await openLeaf(parent, name, limits)
  try {
    await leaf.add(init.pid)
    return leaf
  } catch (error) {
    await leaf.remove().catch(() => undefined)
    throw error
  }
}

/**
 * Limits a sandbox whose command has not started yet, through its pid 1, from which everything inside descends. prlimit always, a cgroup leaf named after
 * the run where we may make one. Throws `limits-unavailable` when they are required and that fails.
 */
export async function applyLimits(
  deps: { readonly cgroup: CgroupParent | null; readonly log: Log },
  init: ProcessId,
  name: string,
  limits: Limits,
): Promise<AppliedLimits> {
  assertEnforceable(limits, deps.cgroup)
  applyPrlimit(init.pid, limits)
  if (deps.cgroup === null) return { enforced: enforceable(limits, null), leaf: null }
  try {
    return { enforced: enforceable(limits, deps.cgroup), leaf: await enterLeaf(deps.cgroup, init, name, limits) }
  } catch (error) {
    if (limits.enforce === 'required')
      throw new AppError('limits-unavailable', `the cgroup ${deps.cgroup.dir} cannot be used: ${messageOf(error)}`, { cause: error })
    deps.log.warn({ err: error }, 'cgroup unusable, limits by prlimit alone')
    return { enforced: enforceable(limits, null), leaf: null }
  }
}
