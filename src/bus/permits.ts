import { AppError } from '../core/errors.ts'
import type { Grant, Principal } from '../protocol/common.ts'
import { actorOf, type BrokerContext } from './context.ts'
import type { Hourly } from './hourly.ts'

/** What an act is about, for its record. */
export interface About {
  readonly action: string
  /** As the trail names it: the task for tasks, pushes and reviews. */
  readonly subject: string | null
  readonly body?: Readonly<Record<string, unknown>>
}

export interface Permits {
  /** Both what the run was launched with and the role's grants of now must hold it. The founder and the host may all. */
  has(principal: Principal, grant: Grant): boolean
  /** Throws `not-permitted`, once it is recorded, unless the grant is held. */
  demand(principal: Principal, grant: Grant, about: About): Promise<void>
  /** The same for a right that is no grant: `held` says whether it is held. */
  deny(principal: Principal, grant: Grant, about: About, why: string): Promise<never>
  /** Inside the act's transaction: records that a grant was used. The founder's acts need none. */
  used(principal: Principal, grant: Grant, about: About): void
}

/** Reading needs grants too, but only what changes something is an act: a reader of the trail would write it as it reads. */
export function createPermits({ store, roster }: Pick<BrokerContext, 'store' | 'roster'>, denials: Hourly): Permits {
  const has = (principal: Principal, grant: Grant): boolean => {
    if (principal.kind !== 'session') return true
    const now = roster()
    const seat = now.instances.get(principal.instance)
    return seat?.role === principal.role && principal.grants.has(grant) && now.grants(principal.role).has(grant)
  }
  const record = (kind: 'action.allowed' | 'action.denied', principal: Principal, grant: Grant, about: About): void => {
    store.trail.append({ kind, subject: about.subject, actor: actorOf(principal), body: { grant, action: about.action, ...about.body } })
  }
  const deny = async (principal: Principal, grant: Grant, about: About, why: string): Promise<never> => {
    // a run that is refused in a loop must not fill the disk
    const counted = principal.kind !== 'session' || denials.take(principal.run)
    if (counted) await store.write(() => record('action.denied', principal, grant, about))
    throw new AppError('not-permitted', why)
  }
  return {
    has,
    deny,
    async demand(principal, grant, about) {
      if (!has(principal, grant)) await deny(principal, grant, about, `${about.action} needs the grant ${grant}`)
    },
    used(principal, grant, about) {
      if (principal.kind === 'session') record('action.allowed', principal, grant, about)
    },
  }
}
