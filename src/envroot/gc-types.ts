import type { ClaimDeps } from './ports.ts'

export interface GcRow {
  readonly kind: 'run-directory' | 'env-root' | 'cache'
  /** The run, or the env root's name. */
  readonly name: string
  readonly path: string
  readonly sizeBytes: number
  /** `reclaim`: `gc --apply` would remove it; `removed`: it did; `kept`: due, but see why. */
  readonly action: 'reclaim' | 'removed' | 'kept'
  readonly why: string | null
}

export type GcDeps = ClaimDeps & {
  readonly now: () => number
  /** When a run ended, epoch ms; null: it lives, or nobody knows it. */
  readonly endedAt: (run: string) => number | null
}

export interface GcRequest {
  readonly business: string
  /** false: only say what would go. */
  readonly apply: boolean
  /** Ended for longer than this, what a run left is due. */
  readonly keepRunsMs: number
}

/** Was the run's end so long ago that what it left is due? What nobody knows is never due. */
export function isDue(deps: Pick<GcDeps, 'now' | 'endedAt'>, request: GcRequest, run: string): boolean {
  const endedAt = deps.endedAt(run)
  return endedAt !== null && deps.now() - endedAt > request.keepRunsMs
}
