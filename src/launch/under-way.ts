import type { Scope } from '../core/scope.ts'
import type { Admission, LaunchOrder } from './admit.ts'
import type { BundleFiles, BundleParts } from './bundle.ts'
import type { LaunchDeps } from './ports.ts'
import type { OpenedSandbox } from './sandbox-ports.ts'
import type { ProcessId } from './store-ports.ts'
import type { PreparedProject, RunDirectory } from './tree-ports.ts'

/** A launch past its gate. Everything that it leaves to be undone when it fails is registered in `undo` by the step that did it. */
export interface Launch {
  readonly deps: LaunchDeps
  readonly order: LaunchOrder
  readonly admission: Admission
  readonly undo: Scope
}

/** A run directory, and the sandbox that is bound to it. */
export interface Spawned {
  readonly parts: BundleParts
  readonly programs: BundleFiles
  readonly directory: RunDirectory
  readonly opened: OpenedSandbox
}

/** The runner runs, and waits for its capability. */
export interface Waiting extends Spawned {
  readonly runner: ProcessId
}

/** All that the commit makes a run of. */
export interface Made extends Waiting {
  readonly projects: readonly PreparedProject[]
}
