import { AppError } from '../core/errors.ts'
import type { SessionPrincipal } from '../protocol/common.ts'
import type { AgentRow } from '../protocol/rows.ts'
import { actorOf, type BrokerContext, stampOf } from './context.ts'

export interface Seat {
  readonly role: string
  readonly instance: string
}

export interface RoleRules {
  /** Takes the role of the principal's instance; again by the same run changes nothing. */
  claim(principal: SessionPrincipal): Promise<Seat>
  release(principal: SessionPrincipal): Promise<Readonly<Record<string, never>>>
  /** Every configured instance, with the run that holds its role. */
  agents(): AgentRow[]
}

export function createRoleRules({ store, roster, clock }: BrokerContext): RoleRules {
  const { sessions, trail } = store
  const claimNow = (principal: SessionPrincipal): void => {
    const { run, instance, role } = principal
    const holder = sessions.holderOf(instance)
    if (holder?.run === run) return
    if (holder !== null) throw new AppError('role-held', `${instance} is held by run ${holder.run}`)
    sessions.setClaimed(run, stampOf(clock))
    trail.append({ kind: 'role.claimed', subject: run, actor: actorOf(principal), body: { role, instance } })
  }
  const releaseNow = (principal: SessionPrincipal): void => {
    const { run, instance, role } = principal
    if (sessions.holderOf(instance)?.run !== run) return
    sessions.setClaimed(run, null)
    trail.append({ kind: 'role.released', subject: run, actor: actorOf(principal), body: { role, instance } })
  }
  return {
    async claim(principal) {
      await store.write(() => claimNow(principal))
      return { role: principal.role, instance: principal.instance }
    },
    async release(principal) {
      await store.write(() => releaseNow(principal))
      return {}
    },
    agents: () =>
      [...roster().instances].map(([instance, { role, model, family }]) => {
        const holder = sessions.holderOf(instance)
        const state = (holder ?? sessions.liveOf(instance))?.state ?? null
        return { role, instance, holder_run: holder?.run ?? null, since: holder?.claimedAt ?? null, model, family, state }
      }),
  }
}
