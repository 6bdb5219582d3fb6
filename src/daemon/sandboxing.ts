import type { RunHelper } from '../core/run-helper.ts'
import type { Log } from '../core/log.ts'
import { findOnPath } from '../core/programs.ts'
import type { Config, RoleConfig } from '../config/types.ts'
import type { LocatedHarness } from '../harness/contract.ts'
import { RUNNER } from '../launch/bundle.ts'
import type { OpenedSandbox, SandboxRequest } from '../launch/sandbox-ports.ts'
import { type Bwrap, createBwrap } from '../sandbox/bwrap.ts'
import { type CgroupParent, findOwnCgroup, openCgroupParent } from '../sandbox/cgroup.ts'
import { runHelper } from '../sandbox/helper.ts'
import { assertEnforceable } from '../sandbox/limits.ts'
import { helperPlan, type Limits, sessionPlan } from '../sandbox/plan.ts'
import { INSIDE } from '../sandbox/policy.ts'
import { createProbe, type Probe } from '../sandbox/probe.ts'
import { ensureRunnerNode } from '../sandbox/runner-node.ts'
import { locateNode, type NodeProgram } from '../sandbox/node-program.ts'
import { openSession } from '../sandbox/session.ts'
import type { Forbidden } from '../sandbox/sources.ts'
import { readSystem } from '../sandbox/system.ts'

interface SandboxingDeps {
  readonly log: Log
  readonly config: () => Config
  readonly configDir: string
  readonly dataRoot: string
  readonly busHost: string
  readonly home: string
  readonly env: NodeJS.ProcessEnv
  /** The helper program's own file, which helpers see at that path. */
  readonly helperProgram: string
}

export interface Sandboxing {
  readonly runHelper: RunHelper
  readonly helperCommand: readonly string[]
  /** Throws `sandbox-unavailable`. */
  readonly check: () => Promise<void>
  /** Throws `limits-unavailable`. */
  readonly assertLimits: (role: RoleConfig) => void
  readonly openSandbox: (request: SandboxRequest, located: LocatedHarness, harnessEnv: Readonly<Record<string, string>>) => Promise<OpenedSandbox>
}

const ids = (): { uid: number; gid: number } => ({ uid: process.getuid?.() ?? -1, gid: process.getgid?.() ?? -1 })

const limitsOf = ({ limits }: RoleConfig): Limits => ({
  memoryBytes: limits.memoryBytes,
  pids: limits.pids,
  cpus: limits.cpus,
  enforce: limits.enforce,
})

function forbiddenOf({ config, configDir, dataRoot, home }: SandboxingDeps): Forbidden {
  const roots = [...config().businesses.values()].flatMap((business) => Object.values(business.projects).map((project) => project.root))
  return { trees: [dataRoot, configDir, ...roots], home }
}

function createRunHelper(deps: SandboxingDeps, bwrap: () => Bwrap, node: NodeProgram, runnerNode: string): RunHelper {
  return (request) => {
    const { binds, command, cwd, env, ...rest } = request
    const own = [runnerNode, deps.helperProgram].map((path) => ({ bind: { path }, readOnly: true }))
    const plan = helperPlan({
      system: readSystem(deps.env),
      ...ids(),
      env,
      programs: node.programs,
      forbidden: forbiddenOf(deps),
      binds: [...binds, ...own],
      cwd,
    })
    return runHelper({ bwrap: bwrap(), log: deps.log }, { plan, command, ...rest })
  }
}

function createOpenSandbox(deps: SandboxingDeps, bwrap: () => Bwrap, cgroup: CgroupParent | null, node: NodeProgram): Sandboxing['openSandbox'] {
  return async (request, located, harnessEnv) => {
    const { run, role, claim, directory, sockets, env, signal } = request
    const plan = sessionPlan({
      system: readSystem(deps.env),
      ...ids(),
      run,
      network: role.network,
      env: { ...harnessEnv, ...env },
      programs: [...node.programs, ...located.programs],
      pathDirs: [...node.pathDirs, ...located.pathDirs, directory.bundle.path],
      forbidden: forbiddenOf(deps),
      home: directory.home,
      workspace: claim.workspace,
      state: claim.state,
      cache: claim.cache,
      bundle: directory.bundle,
      sessionFile: directory.sessionFile,
      sockets,
      runnerNode: await ensureRunnerNode(deps.busHost),
      limits: limitsOf(role),
    })
    const command = [INSIDE.runnerNode, `${directory.bundle.path}/${RUNNER}`, directory.sessionFile.path]
    const session = { plan, command, lockFd: claim.lockFd, stderrFd: directory.logFd, signal }
    const sandbox = await openSession({ bwrap: bwrap(), cgroup, log: deps.log }, session)
    return { sandbox, planHash: plan.hash }
  }
}

interface Tools {
  readonly bwrap: Bwrap
  readonly probe: Probe
}

/** One bubblewrap and its probe, made anew when a reload names another. */
function createTools(deps: SandboxingDeps, runnerNode: string): () => Tools {
  let made: { readonly path: string | null; readonly tools: Tools } | undefined
  return () => {
    // without one on PATH it is /usr/bin/bwrap
    const path = deps.config().system.bwrap ?? findOnPath('bwrap', deps.env.PATH)
    if (made === undefined || made.path !== path) {
      const bwrap = createBwrap(path)
      made = { path, tools: { bwrap, probe: createProbe({ bwrap, scratchDir: deps.busHost, runnerNode, forbidden: forbiddenOf(deps), log: deps.log }) } }
    }
    return made.tools
  }
}

/** Everything of the host that starts a sandbox: sessions, helpers, the probe. There is no other way to run what an agent may have written. */
export async function createSandboxing(deps: SandboxingDeps): Promise<Sandboxing> {
  const cgroup = await openCgroupParent(await findOwnCgroup())
  const node = await locateNode(forbiddenOf(deps))
  const runnerNode = await ensureRunnerNode(deps.busHost)
  const tools = createTools(deps, runnerNode)
  const bwrap = (): Bwrap => tools().bwrap
  return {
    runHelper: createRunHelper(deps, bwrap, node, runnerNode),
    // what an agent planted may run beside the helper: an execute-only Node keeps it out of the helper's memory
    helperCommand: [runnerNode, deps.helperProgram],
    check: () => tools().probe.check(),
    assertLimits: (role) => {
      assertEnforceable(limitsOf(role), cgroup)
    },
    openSandbox: createOpenSandbox(deps, bwrap, cgroup, node),
  }
}
