import { readFileSync } from 'node:fs'
import { systemClock } from '../core/clock.ts'
import { messageOf } from '../core/errors.ts'
import { escapeLine } from '../core/escape.ts'
import { createFailpoint } from '../core/failpoint.ts'
import { builtFile, readVersion } from '../core/paths.ts'
import { createScope, type Scope } from '../core/scope.ts'
import { pinDataRoot, type PinnedDir } from '../envroot/pin.ts'
import { HARNESSES } from '../harness/registry.ts'
import { RUNNER } from '../launch/bundle.ts'
import type { LaunchDeps } from '../launch/ports.ts'
import { type Core, createCore } from './core.ts'
import { createGitService, type GitService } from './git-service.ts'
import type { HostDeps } from './host-deps.ts'
import { createLauncher, type Launcher } from './launcher.ts'
import { createLaunching } from './launching.ts'
import { sweepLeftovers } from './leftovers.ts'
import { recover } from './recovery.ts'
import { createStopSignals, type StopSignals, unlessHurried } from './stop-signals.ts'
import { createTrees, type Trees } from './trees.ts'

/** The parts of a running bus host; sockets come on top. */
export interface Host extends Launcher, Core, Trees, StopSignals {
  readonly deps: HostDeps
  readonly version: string
  readonly startedAt: number
  readonly launching: LaunchDeps
  readonly git: GitService
  /** Projects by id: was the root's branch rewritten when it was last looked at? */
  readonly diverged: ReadonlyMap<string, boolean>
  readonly dataRoot: PinnedDir
  readonly close: () => Promise<void>
}

/** The instance that `--pm` launches: the first of the role launch.by; null when the business has none. */
export function pmInstance({ config }: HostDeps): string | null {
  const { launch, instances } = config.business()
  return [...instances].find(([, { role }]) => role === launch.by)?.[0] ?? null
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
  const signals = createStopSignals()
  const diverged = new Map<string, boolean>()
  const shared = { ...deps, ...core, ...trees, dataRoot, failpoint, diverged, clock: systemClock }
  const programs = {
    runnerProgram: readFileSync(builtFile(RUNNER)),
    harnessPrograms: new Map(HARNESSES.flatMap(({ bundled }) => bundled.map((name) => [name, readFileSync(builtFile(name))] as const))),
  }
  const launching = createLaunching(
    {
      ...shared,
      ...programs,
      log: log.child({ component: 'launch' }),
      stopping: signals.closing.signal,
      adopt: core.live.adopt,
      fail: core.live.fail,
      keepTrying: core.live.keepTrying,
      recoverGit: () => git.recover(),
    },
    core.launchBroker,
  )
  const git: GitService = await createGitService({ ...shared, log: log.child({ component: 'git' }), config, stopping: signals.stopping.signal })
  scope.defer(() => unlessHurried(signals, git.settled()))
  await recover({ ...shared, pm: pmInstance(deps) })
  failpoint('recover.git')
  await git.recover().catch((error: unknown) => {
    // without a sandbox no git runs, a backup keeps its repository, and one that is damaged concerns who uses it; whatever needs them first, repairs them first
    log.warn({ err: error }, 'repositories not looked at')
    deps.say(`warning: the working repositories are not looked at yet: ${escapeLine(messageOf(error))}`)
  })
  return {
    ...core,
    ...trees,
    ...signals,
    deps,
    version: readVersion(),
    startedAt: Date.now(),
    launching,
    git,
    diverged,
    dataRoot,
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
