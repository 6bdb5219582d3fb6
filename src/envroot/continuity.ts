import type { EnvOutcome } from '../protocol/common.ts'
import { holdsInState } from './contents.ts'
import type { Decision } from './decide.ts'
import type { Owner, OwnerFound } from './owner.ts'
import type { PinnedDir } from './pin.ts'

/** The earlier run that a claim goes on with, and whether a state/ holds a conversation of its harness. */
export interface Continued {
  readonly run: string
  readonly holdsConversation: (state: PinnedDir) => boolean
}

/** What a claim comes to; `lost`: why the earlier conversation cannot be resumed, null when it can or none was asked for. */
export interface Continuity {
  readonly outcome: EnvOutcome
  readonly lost: string | null
}

const OUTCOMES = { adopt: 'created', keep: 'kept', reset: 'reset' } as const satisfies Record<Decision['kind'], EnvOutcome>

/** Longer, the owner file would be unsafe; an older run than these is in doubt. */
const MAX_RUNS = 100

/** The runs whose one conversation is in state/ once this owner's run has ended, oldest first. */
const runsOf = ({ continues = [], run }: Owner): readonly string[] => [...continues, run]

/** May the conversation that is here be the earlier run's? Only if nobody worked here since but who went on with it. */
export function judgeContinuity(root: PinnedDir, found: OwnerFound, decision: Decision, continued: Continued | null): Continuity {
  const outcome = OUTCOMES[decision.kind]
  if (continued === null) return { outcome, lost: null }
  const { run, holdsConversation } = continued
  if (outcome !== 'kept' || found.kind !== 'owned') return { outcome, lost: `the env root of run ${run} is empty` }
  if (!runsOf(found.owner).includes(run)) return { outcome, lost: `run ${found.owner.run} worked in the env root of run ${run} since` }
  return { outcome: 'continued', lost: holdsInState(root, holdsConversation) ? null : `run ${run} left no conversation` }
}

/** The owner file of a claim: whose conversation it goes on with, and what it takes over from, for a launch that is cut off. */
export function toNewOwner(owner: Owner, found: OwnerFound, { outcome, lost }: Continuity): Owner {
  if (found.kind !== 'owned') return owner
  const { run, continues } = found.owner
  return { ...owner, continues: outcome === 'continued' && lost === null ? runsOf(found.owner).slice(-MAX_RUNS) : undefined, before: { run, continues } }
}
