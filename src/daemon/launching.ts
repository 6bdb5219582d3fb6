import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock } from '../core/clock.ts'
import type { Failpoint } from '../core/failpoint.ts'
import type { Log } from '../core/log.ts'
import { bootId } from '../core/proc.ts'
import type { Broker } from '../bus/broker.ts'
import { actorOf } from '../bus/context.ts'
import { claimEnvRoot } from '../envroot/claim.ts'
import type { PinnedDir } from '../envroot/pin.ts'
import type { ClaimDeps } from '../envroot/ports.ts'
import { availabilityOf, type Availability } from '../harness/availability.ts'
import type { LocatedHarness } from '../harness/contract.ts'
import { findHarness } from '../harness/registry.ts'
import type { Capabilities } from '../launch/capabilities.ts'
import { lookUpFacts } from '../launch/facts.ts'
import type { LaunchBroker, LaunchDeps, StartedRun } from '../launch/ports.ts'
import type { Store } from '../store/open.ts'
import { prepareWorkspace } from '../workspace/prepare.ts'
import type { SyncDeps } from '../workspace/sync.ts'
import type { ConfigState } from './config-state.ts'
import type { DataRootPaths } from './data-root.ts'
import { makeRunDirectory } from './run-directories.ts'
import type { Sandboxing } from './sandboxing.ts'

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
  readonly runnerProgram: Buffer
  readonly stopping: AbortSignal
  readonly adopt: (started: StartedRun) => void
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

const NO_HARNESS: LocatedHarness = { bin: null, version: null, programs: [], pathDirs: [] }

/** What a launch needs, from the parts that may not know each other. */
export function createLaunching(deps: LaunchingDeps, launchBroker: LaunchBroker): LaunchDeps {
  const { log, clock, env, paths, dataRoot, config, store, sandboxing } = deps
  const business = config.business().id
  const located = new Map<string, LocatedHarness>()
  const locate = async (name: string): Promise<Availability> => {
    const settings = config.current().system.harnesses[name] ?? { bin: null }
    const available = await availabilityOf(name, settings, env)
    if (available.ok) located.set(name, available.located)
    return available
  }
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
    limited: () => ({}),
    paths: { envRoot: (name) => join(paths.root, 'envs', business, name), runDir: (run) => join(paths.root, 'launches', business, run) },
    facts: (target) =>
      lookUpFacts(
        {
          dataRoot: paths.root,
          availabilityOf: locate,
          checkSandbox: sandboxing.check,
          assertLimits: (role) => {
            const found = config.business().roles[role]
            if (found !== undefined) sandboxing.assertLimits(found)
          },
        },
        target,
      ),
    claim: (request) => claimEnvRoot(deps.envRoots, request),
    prepare: (workspace, signal) => {
      const projects = Object.entries(config.business().projects).map(([id, { root, branch }]) => ({ id, root, branch }))
      return prepareWorkspace(deps.workspaces, { business, projects, workspace, deadlineMs: config.current().system.limits.prepareTimeoutMs, signal })
    },
    rolePrompt: (role) => (role.prompt === null ? Promise.resolve(null) : readFile(role.prompt, 'utf8')),
    harnessOf: (name) => {
      const { version } = located.get(name) ?? NO_HARNESS
      const needsModelSocket = findHarness(name)?.needsModelSocket ?? false
      return { needsModelSocket, versions: { piVersion: name === 'pi' ? version : null, claudeVersion: name === 'claude-code' ? version : null } }
    },
    openRunDirectory: (run, bundle, session) => {
      const home = findHarness(session.harness)?.configFiles(session) ?? []
      return makeRunDirectory(dataRoot, { business, run }, { bundle, session, home })
    },
    openSandbox: (request) => {
      const { session } = request
      return sandboxing.openSandbox(request, located.get(session.harness) ?? NO_HARNESS, findHarness(session.harness)?.environment(session) ?? {})
    },
    sockets: paths.sockets,
    runnerProgram: deps.runnerProgram,
    adopt: deps.adopt,
  }
}
