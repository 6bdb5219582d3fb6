import { tryFlock } from '../core/kernel.ts'
import type { Log } from '../core/log.ts'
import type { BusinessConfig } from '../config/types.ts'
import type { PinnedDir } from '../envroot/pin.ts'
import type { ClaimDeps } from '../envroot/ports.ts'
import { emptyTree, unsavedWork } from '../workspace/prepare.ts'
import type { SyncDeps } from '../workspace/sync.ts'

const EMPTY_TIMEOUT_MS = 300_000

interface EnvRootDeps {
  readonly dataRoot: PinnedDir
  readonly log: Log
  readonly business: () => BusinessConfig
  readonly workspaces: SyncDeps
  /** The live run that works in an env root, by the store, but for this one. */
  readonly liveInEnv: (env: string, but: string | null) => string | null
}

/** What env roots need of the rest: the kernel's lock, the store's word on who lives, and helper sandboxes for what agents wrote. */
export function createEnvRootDeps({ dataRoot, log, business, workspaces, liveInEnv }: EnvRootDeps): ClaimDeps {
  return {
    dataRoot,
    log,
    tryFlock,
    holderOf: (_business, env, asker) => liveInEnv(env, asker),
    emptyTree: (dir, keep, signal) => emptyTree(workspaces, dir, keep, { timeoutMs: EMPTY_TIMEOUT_MS, signal }),
    unsavedWork: ({ workspace, signal }) => unsavedWork(workspaces, { business: business().id, workspace, signal }),
  }
}
