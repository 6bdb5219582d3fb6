import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock } from '../core/clock.ts'
import { AppError, messageOf } from '../core/errors.ts'
import type { Failpoint } from '../launch/failpoints.ts'
import type { Log } from '../core/log.ts'
import { bootId } from '../core/proc.ts'
import type { Broker } from '../bus/broker.ts'
import { actorOf } from '../bus/context.ts'
import type { RoleConfig, SystemConfig } from '../config/types.ts'
import type { PinnedDir } from '../envroot/pin.ts'
import type { ClaimDeps } from '../envroot/ports.ts'
import { availabilityOf, type Availability } from '../harness/availability.ts'
import type { LocatedHarness } from '../harness/contract.ts'
import { configFilesOf, findHarness } from '../harness/registry.ts'
import { createVersions } from '../harness/version.ts'
import type { Gateway } from '../gateway/gateway.ts'
import type { Capabilities } from '../launch/capabilities.ts'
import { lookUpFacts } from '../launch/facts.ts'
import type { LaunchDeps, StartedRun } from '../launch/ports.ts'
import type { LaunchBroker } from '../launch/store-ports.ts'
import type { Store } from '../store/open.ts'
import type { SyncDeps } from '../workspace/sync.ts'
import type { ConfigState } from './config-state.ts'
import type { DataRootPaths } from './data-root.ts'
import { makeRunDirectory } from './run-directories.ts'
import type { Sandboxing } from './sandboxing.ts'
import { createTreeSteps } from './tree-steps.ts'

export interface LaunchingDeps {
  readonly log: Log
  readonly clock: Clock
  readonly env: NodeJS.ProcessEnv
  readonly paths: DataRootPaths
  readonly dataRoot: PinnedDir
  readonly config: ConfigState
  readonly store: Store
  readonly broker: Broker
  readonly capabilities: Capabilities
  readonly failpoint: Failpoint
  readonly sandboxing: Sandboxing
  readonly envRoots: ClaimDeps
  readonly workspaces: SyncDeps
  readonly gateway: Gateway
  readonly runnerProgram: Buffer
  /** What harnesses want in a bundle, by name. */
  readonly harnessPrograms: ReadonlyMap<string, Buffer>
  readonly stopping: AbortSignal
  readonly adopt: (started: StartedRun) => void
  readonly keepTrying: LaunchDeps['keepTrying']
  readonly fail: LaunchDeps['fail']
  /** Whether a project's root was rewritten, as the last look at it found. */
  readonly diverged: Map<string, boolean>
  /** Repositories are right after a crash before anything touches them; once. */
  readonly recoverGit: () => Promise<void>
}

export function createLaunchBroker({
  store,
  broker,
  closeRun,
}: {
  readonly store: Store
  readonly broker: Broker
  readonly closeRun: (run: string) => void
}): LaunchBroker {
  return {
    task: (id) => store.tasks.get(id),
    assignTask: (id, instance, by) => {
      store.tasks.setAssignee(id, instance)
      store.trail.append({ kind: 'task.assigned', subject: id, actor: actorOf(by), body: { assignee: instance } })
    },
    firstRequest: (from, to, about) => broker.messages.firstRequest(from, to, about),
    runEnded: (run, end) => {
      const session = store.sessions.get(run)
      return session === null ? false : broker.runEnded(session, end).released
    },
    afterEnd: closeRun,
  }
}

/** The file was there when the configuration was read; it may be gone by now. */
async function readPrompt({ prompt }: Pick<RoleConfig, 'prompt'>): Promise<string | null> {
  if (prompt === null) return null
  return readFile(prompt, 'utf8').catch((error: unknown) => {
    throw new AppError('config-invalid', `the prompt ${prompt} can't be read: ${messageOf(error)}`, { hint: 'mosaic config check', cause: error })
  })
}

function createModelAccess({ gateway }: LaunchingDeps): Pick<LaunchDeps, 'limited' | 'openModel' | 'closeModel'> {
  return {
    limited: gateway.limited,
    openModel: ({ run, instance, role, task, harness, family, model }, { system }) => {
      const listed = system.harnesses[harness]?.models ?? []
      return gateway.open({ run, instance, role, task, family, models: [model, ...listed] })
    },
    closeModel: gateway.close,
  }
}

const NO_HARNESS: LocatedHarness = { bin: null, inside: null, version: null, programs: [], pathDirs: [] }

/** Programs as the last look at them found them: a launch looks before its gate. */
function createLocator(env: NodeJS.ProcessEnv): {
  readonly locate: (name: string, system: SystemConfig) => Promise<Availability>
  readonly locatedAs: (name: string) => LocatedHarness
} {
  const located = new Map<string, LocatedHarness>()
  const versionOf = createVersions()
  return {
    locatedAs: (name) => located.get(name) ?? NO_HARNESS,
    locate: async (name, system) => {
      const settings = system.harnesses[name] ?? { bin: null }
      const available = await availabilityOf({ versionOf }, name, settings, env)
      if (available.ok) located.set(name, available.located)
      return available
    },
  }
}

/** What a launch needs, from the parts that may not know each other. */
export function createLaunching(deps: LaunchingDeps, launchBroker: LaunchBroker): LaunchDeps {
  const { log, clock, env, paths, dataRoot, config, store, sandboxing } = deps
  const business = config.business().id
  const { locate, locatedAs } = createLocator(env)
  return {
    log,
    clock,
    env,
    store,
    broker: launchBroker,
    capabilities: deps.capabilities,
    failpoint: deps.failpoint,
    bootId: bootId(),
    stopping: deps.stopping,
    config: config.launchConfig,
    paths: { envRoot: (name) => join(paths.root, 'envs', business, name), runDir: (run) => join(paths.root, 'launches', business, run) },
    facts: (target, { system, business: { roles } }) =>
      lookUpFacts(
        {
          dataRoot: paths.root,
          availabilityOf: (name) => locate(name, system),
          checkSandbox: sandboxing.check,
          assertLimits: (role) => {
            const found = roles[role]
            if (found !== undefined) sandboxing.assertLimits(found)
          },
        },
        target,
      ),
    ...createTreeSteps(deps),
    rolePrompt: readPrompt,
    harnessOf: (name) => {
      const { version } = locatedAs(name)
      const { needsModelSocket = false, bundled = [] } = findHarness(name) ?? {}
      const programs = new Map([...deps.harnessPrograms].filter(([file]) => bundled.includes(file)))
      return { needsModelSocket, programs, versions: { piVersion: name === 'pi' ? version : null, claudeVersion: name === 'claude-code' ? version : null } }
    },
    openRunDirectory: (run, bundle, session) => {
      const home = configFilesOf(session, 'home')
      return makeRunDirectory(dataRoot, { business, run }, { bundle, session, home })
    },
    openSandbox: (request) => {
      const { session, placeholder } = request
      const program = locatedAs(session.harness)
      return sandboxing.openSandbox(request, program, findHarness(session.harness)?.environment(session, { located: program, placeholder }) ?? {})
    },
    sockets: paths.sockets,
    ...createModelAccess(deps),
    runnerProgram: deps.runnerProgram,
    adopt: deps.adopt,
    fail: deps.fail,
    keepTrying: deps.keepTrying,
  }
}
