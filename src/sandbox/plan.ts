import { createHash } from 'node:crypto'
import type { Forbidden } from './sources.ts'
import { AGENT_TMPFS, BASE_PATH, INIT_COVER, INSIDE, PRIVATE_TMPFS, SOCKET_TMPFS, syntheticEtc, USER } from './policy.ts'
import { assertNoNesting, type Bind, data, ownBind, pinned, readOnly, type Step, tmpfs, visible } from './steps.ts'
import type { SystemView } from './system.ts'

export interface Program {
  readonly source: string
  readonly dest: string
}

export interface Limits {
  readonly memoryBytes: number | null
  readonly pids: number | null
  readonly cpus: number | null
  readonly enforce: 'available' | 'required'
}

interface PlanInput {
  readonly system: SystemView
  readonly uid: number
  readonly gid: number
  readonly env: Readonly<Record<string, string>>
  /** Read-only, checked against `forbidden`; a program that is one file is bound as one file. */
  readonly programs: readonly Program[]
  readonly forbidden: Forbidden
}

export interface SessionPlanInput extends PlanInput {
  readonly run: string
  readonly network: 'none' | 'host'
  readonly home: Bind
  readonly workspace: Bind
  readonly state: Bind
  readonly cache: Bind
  readonly bundle: Bind
  readonly sessionFile: Bind
  /** `name` as it is called in /run/mosaic; `path` on the host. */
  readonly sockets: readonly { readonly name: string; readonly path: string }[]
  /** ensureRunnerNode's copy. It is at INSIDE.runnerNode. */
  readonly runnerNode: string
  readonly pathDirs: readonly string[]
  readonly limits: Limits
  /** Files of Mosaic's own installation, which may lie where no other source may (in a project that is Mosaic itself). */
  readonly ownPrograms?: readonly Program[]
}

export interface HelperPlanInput extends PlanInput {
  /** A Bind is pinned; a path is bound by name and keeps it. */
  readonly binds: readonly { readonly bind: Bind | { readonly path: string }; readonly readOnly: boolean }[]
  readonly cwd: string
}

/** Everything that bubblewrap is told, in order, and what the read-back compares with. */
export interface SandboxPlan {
  readonly uid: number
  readonly gid: number
  readonly network: 'none' | 'host'
  readonly env: Readonly<Record<string, string>>
  readonly cwd: string
  readonly steps: readonly Step[]
  readonly limits: Limits
  readonly forbidden: Forbidden
  /** SHA-256 of all the above as canonical JSON, descriptor numbers left out. */
  readonly hash: string
}

/**
 * A helper runs what an agent may have planted, a filter of git for one. Room for git's threads and Node's, and for the largest objects that git
 * holds in memory; not for a fork bomb.
 */
const HELPER_LIMITS: Limits = { memoryBytes: 4 * 1024 ** 3, pids: 256, cpus: null, enforce: 'available' }

const sorted = (record: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(Object.entries(record).sort(([a], [b]) => (a < b ? -1 : 1)))

function withHash(plan: Omit<SandboxPlan, 'hash'>): SandboxPlan {
  assertNoNesting(plan.steps)
  const env = sorted(plan.env)
  const steps = plan.steps.map((step) => (step.kind === 'pinned' ? { kind: step.kind, path: step.bind.path, readOnly: step.readOnly } : step))
  const { uid, gid, network, cwd, limits } = plan
  return { ...plan, env, hash: createHash('sha256').update(JSON.stringify({ uid, gid, network, env, cwd, limits, steps })).digest('hex') }
}

/** The machine's own programs and libraries, a synthetic /etc, private /proc, /dev and temporary directories. */
function baseSteps({ system, uid, gid }: PlanInput, network: 'none' | 'host', home: string): Step[] {
  const etc = { ...syntheticEtc({ uid, gid }, home, system.shell), ...(network === 'host' ? { 'resolv.conf': system.resolvConf } : {}) }
  return [
    visible('/usr'),
    ...system.links.map(({ path, target }): Step => ({ kind: 'link', dest: path, target })),
    ...system.directories.map((path) => visible(path)),
    ...Object.entries(etc).map(([name, text]) => data(`/etc/${name}`, text)),
    ...system.etc.map(({ source, dest }) => visible(source, dest)),
    { kind: 'proc', dest: '/proc' },
    tmpfs(INIT_COVER),
    readOnly(INIT_COVER.dest),
    visible('/proc/sys'),
    { kind: 'dev', dest: '/dev' },
    ...PRIVATE_TMPFS.map(tmpfs),
  ]
}

/** Last, since mount points are made until then. --dev is a tmpfs without a size. */
const seal: readonly Step[] = [readOnly('/dev'), readOnly('/')]

function baseEnv({ system }: PlanInput, pathDirs: readonly string[]): Record<string, string> {
  const path = [...new Set([...pathDirs, ...system.pathDirs, ...BASE_PATH])].join(':')
  return { PATH: path, SHELL: system.shell, TERM: 'dumb', LANG: 'C.UTF-8', TZ: system.timeZone, TMPDIR: '/tmp' }
}

/** The one policy of a session: 13 variables at most of ours, the tree of the run, the sockets of its role. Pure. */
export function sessionPlan(input: SessionPlanInput): SandboxPlan {
  const home = input.home.path
  const sockets = input.sockets.map(({ name, path }) => ownBind(path, `${INSIDE.sockets}/${name}`, true))
  const steps = [
    ...baseSteps(input, input.network, home),
    tmpfs(AGENT_TMPFS),
    tmpfs(SOCKET_TMPFS),
    ...sockets,
    readOnly(SOCKET_TMPFS.dest),
    ownBind(input.runnerNode, INSIDE.runnerNode, true),
    ...(input.ownPrograms ?? []).map(({ source, dest }) => ownBind(source, dest, true)),
    ...input.programs.map(({ source, dest }) => visible(source, dest)),
    ...[input.home, input.workspace, input.state, input.cache].map((bind) => pinned(bind, false)),
    ...[input.bundle, input.sessionFile].map((bind) => pinned(bind, true)),
    ...seal,
  ]
  const env = { ...baseEnv(input, input.pathDirs), ...input.env, HOME: home, USER, LOGNAME: USER, MOSAIC_RUN_ID: input.run }
  const { uid, gid, network, limits, forbidden } = input
  return withHash({ uid, gid, network, env, cwd: input.workspace.path, steps, limits, forbidden })
}

/** For preparation, git and removals: no network, no sockets, the same base, and only the trees named. Pure. */
export function helperPlan(input: HelperPlanInput): SandboxPlan {
  const steps = [
    ...baseSteps(input, 'none', '/tmp'),
    ...input.programs.map(({ source, dest }) => visible(source, dest)),
    ...input.binds.map(({ bind, readOnly: isReadOnly }) => ('fd' in bind ? pinned(bind, isReadOnly) : ownBind(bind.path, bind.path, isReadOnly))),
    ...seal,
  ]
  const env = { ...baseEnv(input, []), HOME: '/tmp', USER, LOGNAME: USER, ...input.env }
  const { uid, gid, cwd, forbidden } = input
  return withHash({ uid, gid, network: 'none', env, cwd, steps, limits: HELPER_LIMITS, forbidden })
}
