import type { EnvClaim, Target } from './claim-root.ts'
import { claimRoot } from './claim-root.ts'
import { messageOf } from '../core/errors.ts'
import { isRunId } from '../core/ids.ts'
import { isEnvRefusal } from './decide.ts'
import type { PinnedDir } from './pin.ts'
import type { ClaimDeps } from './ports.ts'

/** The earlier run to continue, by the store. */
export interface EarlierRun {
  readonly run: string
  readonly business: string
  readonly instance: string
  readonly role: string
  readonly task: string | null
  readonly env: string
  /** What its env root was, `dev:ino`. */
  readonly identity: string | null
}

export interface ClaimRequest {
  readonly business: string
  /** The instance's own env root: `<instance>` or `<instance>--<task>`. */
  readonly env: string
  readonly instance: string
  readonly role: string
  readonly task: string | null
  readonly run: string
  readonly mode: 'keep' | 'fresh' | 'continue'
  /** With `fresh`: give up work that would be lost. */
  readonly discard: boolean
  /** null: no such run. */
  readonly continueFrom: EarlierRun | null
  /** Does a state/ hold a conversation that the launch's harness can go on with? Without it, whatever is there counts as one. */
  readonly holdsConversation?: (state: PinnedDir) => boolean
  /** Whose clones' folders must be no links. */
  readonly projects: readonly string[]
}

export function toTarget(request: ClaimRequest): Target {
  const { business, env, instance, task, run } = request
  const fresh = request.mode === 'fresh'
  return {
    owner: { business, env, instance, task, run },
    fresh,
    discard: request.discard,
    mayReset: request.mode !== 'continue',
    create: true,
    identity: null,
    continued: null,
    projects: request.projects,
  }
}

/** The root of the run to go on with. */
export function toContinuedTarget(request: ClaimRequest, { run, env, identity }: EarlierRun): Target {
  const { holdsConversation = () => true } = request
  return { ...toTarget({ ...request, env }), create: false, identity, continued: { run, holdsConversation } }
}

/** The instance's own env root, or one that was made for a single run because that one could not be had. */
const isOwnEnv = (own: string, env: string): boolean => env === own || (env.startsWith(`${own}.`) && isRunId(env.slice(own.length + 1)))

/** Why the earlier run's conversation cannot be resumed, seen from its record alone; null: it may be. Pure. */
export function whyNotContinued(request: ClaimRequest, earlier: EarlierRun | null): string | null {
  if (earlier === null) return 'there is no earlier run to continue'
  const differs = (['business', 'instance', 'role', 'task'] as const).find((key) => earlier[key] !== request[key])
  if (differs !== undefined) return `run ${earlier.run} had another ${differs}`
  if (!isOwnEnv(request.env, earlier.env)) return `run ${earlier.run} worked in another env root`
  return earlier.identity === null ? `run ${earlier.run} left no record of its env root` : null
}

/** A claim, or why it was refused; anything that another env root would meet too is thrown. */
async function attempt(deps: ClaimDeps, target: Target): Promise<EnvClaim | null | string> {
  try {
    return await claimRoot(deps, target)
  } catch (error) {
    if (isEnvRefusal(error)) return messageOf(error)
    throw error
  }
}

async function claimNew(deps: ClaimDeps, request: ClaimRequest, why: string): Promise<EnvClaim | null> {
  const target = toTarget({ ...request, env: `${request.env}.${request.run}` })
  const claim = await claimRoot(deps, target)
  return claim === null ? null : { ...claim, continuityLost: why }
}

/** The workspace is kept if the own root is ours and free; else this run gets a root of its own. */
async function claimOwn(deps: ClaimDeps, request: ClaimRequest, why: string): Promise<EnvClaim | null> {
  const claim = await attempt(deps, toTarget(request))
  if (typeof claim === 'string') return claimNew(deps, request, `${why}; the env root ${request.env}: ${claim}`)
  return claim === null ? null : { ...claim, continuityLost: why }
}

/** Works on in an earlier run's env root where nothing speaks against it. Never resets, and never fails a launch for want of continuity. */
export async function continueRoot(deps: ClaimDeps, request: ClaimRequest): Promise<EnvClaim | null> {
  const earlier = request.continueFrom
  const why = whyNotContinued(request, earlier)
  if (earlier === null || why !== null) return claimOwn(deps, request, why ?? 'there is no earlier run to continue')
  const claim = await attempt(deps, toContinuedTarget(request, earlier))
  if (claim === null) return claimOwn(deps, request, `the env root of run ${earlier.run} is gone`)
  if (typeof claim === 'string') return claimNew(deps, request, `the env root of run ${earlier.run}: ${claim}`)
  return claim
}
