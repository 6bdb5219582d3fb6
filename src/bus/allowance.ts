import type { BrokerStore, DeliveryPolicy } from './ports.ts'

/** How many messages a run may be given now, those of the open transaction counted: several receives may share one. */
export interface Allowance {
  left(instance: string, run: string): number
  /** Inside a transaction: so many are given; the policy hears of it once that is durable. */
  take(instance: string, run: string, messages: number): void
}

export function createAllowance(store: Pick<BrokerStore, 'onCommit' | 'onRollback'>, policy: DeliveryPolicy): Allowance {
  const taken = new Map<string, number>()
  const settle = (instance: string, run: string): void => {
    const messages = taken.get(run) ?? 0
    taken.delete(run)
    policy.delivered(instance, run, messages)
  }
  return {
    left: (instance, run) => policy.room(instance, run) - (taken.get(run) ?? 0),
    take(instance, run, messages) {
      const before = taken.get(run)
      taken.set(run, (before ?? 0) + messages)
      if (before !== undefined) return
      store.onCommit(() => settle(instance, run))
      store.onRollback(() => void taken.delete(run))
    },
  }
}
