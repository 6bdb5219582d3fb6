import type { LogRow, TrailRow } from '../protocol/rows.ts'
import type { Transactions } from './transactions.ts'

/** A row of one of the two append-only logs. */
export type Recorded = { readonly table: 'launch_log'; readonly row: LogRow } | { readonly table: 'trail'; readonly row: TrailRow }

type Listener = (rows: readonly Recorded[]) => void

/** Tells what was appended, once it is durable: nobody has to read it back. */
export interface Feed {
  /** Inside a transaction. */
  readonly add: (recorded: Recorded) => void
  /** Called after each COMMIT with what it appended, in that order; returns the end of it. */
  readonly listen: (listener: Listener) => () => void
}

export function createFeed({ onCommit, onRollback }: Pick<Transactions, 'onCommit' | 'onRollback'>): Feed {
  const listeners = new Set<Listener>()
  let added: Recorded[] = []
  const take = (): readonly Recorded[] => {
    const rows = added
    added = []
    return rows
  }
  const tell = (): void => {
    const rows = take()
    for (const listener of listeners) listener(rows)
  }
  return {
    add(recorded) {
      if (listeners.size === 0) return
      if (added.push(recorded) > 1) return
      onCommit(tell)
      onRollback(take)
    },
    listen(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
  }
}
