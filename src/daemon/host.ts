import { messageOf } from '../core/errors.ts'
import { escapeLine } from '../core/escape.ts'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createFailpoint, type Failpoint } from '../core/failpoint.ts'
import { systemClock } from '../core/clock.ts'
import { packageRoot } from '../core/paths.ts'
import type { Log } from '../core/log.ts'
import { createScope, type Scope } from '../core/scope.ts'
import { createBroker, type Broker } from '../bus/broker.ts'
import type { OnApproved } from '../bus/reviews.ts'
import { pinDataRoot, type PinnedDir } from '../envroot/pin.ts'
import type { ClaimDeps } from '../envroot/ports.ts'
import { type Gateway, openGateway } from '../gateway/gateway.ts'
import { HARNESSES } from '../harness/registry.ts'
import { createRepositoryLocks } from '../git/lock.ts'
import { type Capabilities, createCapabilities } from '../launch/capabilities.ts'
import { createLiveRuns, type LiveRuns } from '../launch/live.ts'
import { RUNNER } from '../launch/bundle.ts'
import type { LaunchDeps } from '../launch/ports.ts'
import type { LaunchBroker } from '../launch/store-ports.ts'
import { familyOf } from '../config/select.ts'
import { openStore, type Store } from '../store/open.ts'
import { createRootGate } from '../workspace/root-gate.ts'
import { createRootLooks } from '../workspace/root-state.ts'
import type { SyncDeps } from '../workspace/sync.ts'
import { sweepLeftovers } from './leftovers.ts'
import type { ConfigState } from './config-state.ts'
import { createConnections, type Connections } from './connections.ts'
import type { DataRootPaths } from './data-root.ts'
import { createEnvRootDeps } from './env-roots.ts'
import { createGitService, type GitService, gitRootOf } from './git-service.ts'
import { createLauncher, type Launcher } from './launcher.ts'
import { createLaunchBroker, createLaunching } from './launching.ts'
import { keepOwnCopy } from './own-copy.ts'
import { placesOf } from './places.ts'
import { recover } from './recovery.ts'
import { createSandboxing, type Sandboxing } from './sandboxing.ts'
import { createTurns, type Turns } from './turns.ts'

export interface HostDeps {
  readonly log: Log
  readonly env: NodeJS.ProcessEnv
  readonly home: string
  readonly configDir: string
  readonly paths: DataRootPaths
  readonly config: ConfigState
  /** Tells the person who watches. */
  readonly say: (line: string) => void
}

/** The parts of a running bus host; sockets come on top. */
export interface Host extends Launcher {
  readonly deps: HostDeps
  readonly version: string
  readonly startedAt: number
  readonly store: Store
  readonly gateway: Gateway
  readonly broker: Broker
  readonly capabilities: Capabilities
  readonly live: LiveRuns
  readonly turns: Turns
  readonly connections: Connections
  readonly launching: LaunchDeps
  readonly sandboxing: Sandboxing
  readonly envRoots: ClaimDeps
  readonly workspaces: SyncDeps
  readonly git: GitService
  /** Projects by id: was the root's branch rewritten when it was last looked at? */
  readonly diverged: ReadonlyMap<string, boolean>
  readonly dataRoot: PinnedDir
  /** Aborted when the stop begins. */
  readonly stopping: AbortController
  /** Aborted at a second request to stop. */
  readonly hurry: AbortController
  readonly close: () => Promise<void>
}

interface Package {
  readonly version: string
}

export const readVersion = (): string => (JSON.parse(readFileSync(join(packageRoot(), 'package.json'), 'utf8')) as Package).version

const artifact = (name: string): string => join(packageRoot(), 'dist', name)

interface Core {
  readonly store: Store
  readonly gateway: Gateway
  readonly broker: Broker
  readonly live: LiveRuns
  readonly turns: Turns
  readonly connections: Connections
  readonly capabilities: Capabilities
  readonly launchBroker: LaunchBroker
}

const reportTo =
  (log: Log, phrase: string) =>
  (error: unknown): void =>
    log.error({ err: error }, phrase)

interface CoreDeps {
  readonly deps: HostDeps
  readonly scope: Scope
  readonly failpoint: Failpoint
  readonly onApproved: OnApproved
}

function createGateway({ log, env, paths, config }: HostDeps, store: Store): Gateway {
  const gatewayLog = log.child({ component: 'gateway' })
  return openGateway({
    log: gatewayLog,
    clock: systemClock,
    env,
    directory: paths.busHost,
    bounds: { allConnections: placesOf('gateway').all },
    familyOf: (model) => familyOf(config.current().system, model),
    record: (usage) => void store.write(() => store.usage.append(usage)).catch(reportTo(gatewayLog, 'recording usage failed')),
  })
}

/** Store, broker and live runs, which know each other through small hooks only. */
function createCore({ deps, scope, failpoint, onApproved }: CoreDeps): Core {
  const { log, config, paths } = deps
  const store = scope.use(openStore({ dataRoot: paths.root, business: config.business().id, log: log.child({ component: 'store' }), clock: systemClock }))
  const gateway = scope.use(createGateway(deps, store))
  const capabilities = createCapabilities()
  const connections = createConnections()
  const turns = scope.use(
    createTurns({
      clock: systemClock,
      turnsPerHour: (instance) => config.roleOf(instance).limits.turnsPerHour,
      poke: (instance) => void broker.poke(instance).catch(reportTo(log, 'giving messages failed')),
      onStarted: (run) => live.turnStarted(run),
    }),
  )
  const broker: Broker = createBroker({
    store,
    roster: config.roster,
    clock: systemClock,
    log: log.child({ component: 'bus' }),
    failpoint,
    policy: turns,
    onApproved,
  })
  const launchBroker = createLaunchBroker({ store, broker, closeRun: (run) => connections.closeRun(run) })
  const live: LiveRuns = createLiveRuns({
    store,
    broker: launchBroker,
    capabilities,
    clock: systemClock,
    log: log.child({ component: 'launch' }),
    failpoint,
    limitedMs(run) {
      const family = store.sessions.get(run)?.family
      const until = family === undefined || !gateway.serves(run) ? null : gateway.retryAtMs(family)
      return until === null ? null : Math.max(0, until - systemClock.now())
    },
    onEnded(run) {
      turns.forget(run)
      gateway.close(run).catch(reportTo(log, 'closing a model socket failed'))
    },
  })
  scope.defer(() => live.close())
  return { store, gateway, broker, live, turns, connections, capabilities, launchBroker }
}

function createWorkspaces({ deps, sandboxing }: { deps: HostDeps; sandboxing: Sandboxing }): SyncDeps {
  const log = deps.log.child({ component: 'workspace' })
  return {
    runHelper: sandboxing.runHelper,
    helperCommand: sandboxing.helperCommand,
    log,
    gitRoot: gitRootOf(deps.paths.root),
    locks: createRepositoryLocks({ log }),
    rootLooks: createRootLooks(),
    rootGate: createRootGate(),
  }
}

/** The instance that `--pm` launches: the first of the role launch.by; null when the business has none. */
export function pmInstance({ config }: HostDeps): string | null {
  const { launch, instances } = config.business()
  return [...instances].find(([, { role }]) => role === launch.by)?.[0] ?? null
}

interface Trees {
  readonly sandboxing: Sandboxing
  readonly workspaces: SyncDeps
  readonly envRoots: ClaimDeps
}

/** Sandboxes, and what works on trees through them. */
async function createTrees({ deps, dataRoot, store }: { deps: HostDeps; dataRoot: PinnedDir; store: Store }): Promise<Trees> {
  const { log, env, home, configDir, paths, config } = deps
  const sandboxing = await createSandboxing({
    log: log.child({ component: 'sandbox' }),
    config: config.current,
    configDir,
    dataRoot: paths.root,
    busHost: paths.busHost,
    home,
    env,
    helperProgram: keepOwnCopy(artifact('prepare.mjs'), paths.busHost),
  })
  const workspaces = createWorkspaces({ deps, sandboxing })
  const liveInEnv = (name: string, but: string | null): string | null => store.sessions.liveInEnv(name, but)?.run ?? null
  return { sandboxing, workspaces, envRoots: createEnvRootDeps({ dataRoot, log, business: config.business, workspaces, liveInEnv }) }
}

async function build(deps: HostDeps, scope: Scope): Promise<Host> {
  const { log, paths, config } = deps
  const failpoint = createFailpoint(deps.env)
  const dataRoot = await pinDataRoot(paths.root)
  sweepLeftovers(paths.busHost)
  scope.defer(() => {
    dataRoot.close()
  })
  const core = createCore({ deps, scope, failpoint, onApproved: (approval) => git.onApproved(approval) })
  const trees = await createTrees({ deps, dataRoot, store: core.store })
  const stopping = new AbortController()
  const diverged = new Map<string, boolean>()
  const shared = { ...deps, ...core, ...trees, dataRoot, failpoint, diverged, clock: systemClock }
  const programs = {
    runnerProgram: readFileSync(artifact(RUNNER)),
    harnessPrograms: new Map(HARNESSES.flatMap(({ bundled }) => bundled.map((name) => [name, readFileSync(artifact(name))] as const))),
  }
  const launching = createLaunching(
    {
      ...shared,
      ...programs,
      log: log.child({ component: 'launch' }),
      stopping: stopping.signal,
      adopt: core.live.adopt,
      fail: core.live.fail,
      keepTrying: core.live.keepTrying,
      recoverGit: () => git.recover(),
    },
    core.launchBroker,
  )
  const git: GitService = await createGitService({ ...shared, log: log.child({ component: 'git' }), config, stopping: stopping.signal })
  scope.defer(() => git.settled())
  await recover({ ...shared, pm: pmInstance(deps) })
  failpoint('recover.git')
  await git.recover().catch((error: unknown) => {
    // without a sandbox no git runs, a backup keeps its repository, and one that is damaged concerns who uses it; whatever needs them first, repairs them first
    log.warn({ err: error }, 'repositories not looked at')
    deps.say(`warning: the working repositories are not looked at yet: ${escapeLine(messageOf(error))}`)
  })
  const hurry = new AbortController()
  return {
    ...core,
    ...trees,
    deps,
    version: readVersion(),
    startedAt: Date.now(),
    launching,
    git,
    diverged,
    dataRoot,
    stopping,
    hurry,
    ...createLauncher(launching),
    close: () => scope.close(),
  }
}

/**
 * Opens everything below the sockets, in order: data root pinned, store, sandboxes, launches; then recovers what an earlier
 * host left. The caller holds the host lock.
 */
export async function openHost(deps: HostDeps): Promise<Host> {
  const scope = createScope()
  try {
    return await build(deps, scope)
  } catch (error) {
    await scope.close()
    throw error
  }
}
