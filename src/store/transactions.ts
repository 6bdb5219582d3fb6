import type { Database } from 'better-sqlite3'
import type { Log } from '../core/log.ts'
import { createUnit, isFull, runAfter, type Unit } from './unit.ts'

export interface Transactions {
  /**
   * Runs fn in the one transaction of this turn of the event loop; resolves after its COMMIT. A refusal that fn throws
   * before it changed anything is its own; one after a change undoes the transaction, and the others run again, each
   * alone. So fn may run twice: what it does outside of the store belongs in onCommit.
   */
  readonly write: <T>(fn: () => T) => Promise<T>
  /** Commits what is queued, then runs fn in a transaction of its own; on a full disk with the reserve, where `reserve` says so. */
  readonly writeNow: <T>(fn: () => T, options?: WriteOptions) => T
  /** Inside a transaction: runs effect once it is durable. */
  readonly onCommit: (effect: () => void) => void
  /** Inside a transaction: takes an effect back when it is undone. */
  readonly onRollback: (undo: () => void) => void
  /** Says that the transaction has changed something. Called by every statement that writes. */
  readonly touch: () => void
  /** Called after each COMMIT that changed something; returns the end of it. */
  readonly onChange: (listener: () => void) => () => void
  /** Commits what is queued and takes no more. */
  readonly close: () => void
}

export interface WriteOptions {
  /** For what must be written, also on a full disk: the end of a run. */
  readonly reserve?: boolean
}

interface Job {
  readonly run: () => void
  readonly settle: () => void
  readonly fail: (error: unknown) => void
}

interface Options {
  /** Frees space for what must be written on a full disk; false when there is none left to free. */
  readonly freeReserve: () => boolean
  /** Can the disk of the store still be written? */
  readonly hasRoom: () => boolean
  readonly log: Log
}

function runAlone(unit: Unit, job: Job): void {
  try {
    unit.transact(job.run)
  } catch (error) {
    job.fail(error)
    return
  }
  job.settle()
}

/** Runs all jobs in one transaction; those that refused, with their reasons. */
function runTogether(unit: Unit, batch: readonly Job[]): ReadonlyMap<Job, unknown> {
  const refusals = new Map<Job, unknown>()
  unit.transact(() => {
    for (const job of batch) {
      const refusal = unit.part(job.run)
      if (refusal !== null) refusals.set(job, refusal.refused)
    }
  })
  return refusals
}

function runBatch(unit: Unit, batch: readonly Job[]): void {
  let refusals: ReadonlyMap<Job, unknown>
  try {
    refusals = runTogether(unit, batch)
  } catch (error) {
    // each alone would meet the same full disk
    for (const job of batch)
      if (isFull(error)) job.fail(error)
      else runAlone(unit, job)
    return
  }
  for (const job of batch) {
    if (refusals.has(job)) job.fail(refusals.get(job))
    else job.settle()
  }
}

function toJob<T>(fn: () => T, resolve: (value: T) => void, fail: (error: unknown) => void): Job {
  let result: { readonly value: T } | undefined
  return {
    run() {
      result = { value: fn() }
    },
    settle() {
      if (result !== undefined) resolve(result.value)
    },
    fail,
  }
}

export function createTransactions(db: Database, options: Options): Transactions {
  const listeners = new Set<() => void>()
  const failed = (error: unknown): void => options.log.error({ err: error }, 'what follows a commit failed')
  const changed = (): void => {
    for (const listener of listeners) runAfter(listener, failed)
  }
  const unit = createUnit(db, { changed, hasRoom: options.hasRoom, failed })
  const { transact, onCommit, onRollback, touch } = unit
  let queue: Job[] = []
  let closed = false

  const flush = (): void => {
    const batch = queue
    queue = []
    if (batch.length > 0) runBatch(unit, batch)
  }
  const write = <T>(fn: () => T): Promise<T> => {
    if (closed) return Promise.reject(new Error('the store is closed'))
    return new Promise<T>((resolve, reject) => {
      if (queue.length === 0) setImmediate(flush)
      queue.push(toJob(fn, resolve, reject))
    })
  }
  const writeNow = <T>(fn: () => T, { reserve = false }: WriteOptions = {}): T => {
    flush()
    try {
      return transact(fn)
    } catch (error) {
      if (reserve && isFull(error) && options.freeReserve()) return transact(fn)
      throw error
    }
  }
  const onChange = (listener: () => void): (() => void) => {
    listeners.add(listener)
    return () => void listeners.delete(listener)
  }
  const close = (): void => {
    flush()
    closed = true
  }
  return { write, writeNow, onCommit, onRollback, touch, onChange, close }
}
