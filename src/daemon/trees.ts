import { builtFile } from '../core/paths.ts'
import type { PinnedDir } from '../envroot/pin.ts'
import type { ClaimDeps } from '../envroot/ports.ts'
import { createRepositoryLocks } from '../git/lock.ts'
import type { Store } from '../store/open.ts'
import { createRootGate } from '../workspace/root-gate.ts'
import { createRootLooks } from '../workspace/root-state.ts'
import type { SyncDeps } from '../workspace/sync.ts'
import { createEnvRootDeps } from './env-roots.ts'
import { gitRootOf } from './git-service.ts'
import type { HostDeps } from './host-deps.ts'
import { keepOwnCopy } from './own-copy.ts'
import { createSandboxing, type Sandboxing } from './sandboxing.ts'

export interface Trees {
  readonly sandboxing: Sandboxing
  readonly workspaces: SyncDeps
  readonly envRoots: ClaimDeps
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

/** Sandboxes, and what works on trees through them. */
export async function createTrees({ deps, dataRoot, store }: { deps: HostDeps; dataRoot: PinnedDir; store: Store }): Promise<Trees> {
  const { log, env, home, configDir, paths, config } = deps
  const sandboxing = await createSandboxing({
    log: log.child({ component: 'sandbox' }),
    config: config.current,
    configDir,
    dataRoot: paths.root,
    busHost: paths.busHost,
    home,
    env,
    helperProgram: keepOwnCopy(builtFile('prepare.mjs'), paths.busHost),
  })
  const workspaces = createWorkspaces({ deps, sandboxing })
  const liveInEnv = (name: string, but: string | null): string | null => store.sessions.liveInEnv(name, but)?.run ?? null
  return { sandboxing, workspaces, envRoots: createEnvRootDeps({ dataRoot, log, business: config.business, workspaces, liveInEnv }) }
}
