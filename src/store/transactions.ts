import type { Database } from 'better-sqlite3'
import { AppError } from '../core/errors.ts'

export interface Transactions {
  /**
   * Runs fn in the one transaction of this turn of the event loop; resolves after its COMMIT. A refusal that fn throws
   * before it changed anything is its own; one after a change undoes the transaction, and the others run again, each
   * alone. So fn may run twice: what it does outside of the store belongs in onCommit.
   */
  write<T>(fn: () => T): Promise<T>
  /** Commits what is queued, then runs fn in a transaction of its own. */
  writeNow<T>(fn: () => T): T
  /** Inside a transaction: runs effect once it is durable. */
  onCommit(effect: () => void): void
  /** Inside a transaction: takes an effect back when it is undone. */
  onRollback(undo: () => void): void
  /** Says that the transaction has changed something. Called by every statement that writes. */
  touch(): void
  /** Called after each COMMIT that changed something; returns the end of it. */
  onChange(listener: () => void): () => void
  /** Commits what is queued and takes no more. */
  close(): void
}

interface Job {
  readonly run: () => void
  readonly settle: () => void
  readonly fail: (error: unknown) => void
}

interface Options {
  /** Frees space for what must be written on a full disk; false when there is none left to free. */
  readonly freeReserve: () => boolean
}

const isFull = (error: unknown): boolean => error instanceof AppError && error.code === 'disk-full'

function toStoreError(error: unknown): unknown {
  const full = error instanceof Error && 'code' in error && error.code === 'SQLITE_FULL'
  return full ? new AppError('disk-full', 'the store has no room left on its disk', { cause: error }) : error
}

interface Unit {
  transact<T>(fn: () => T): T
  /** Runs fn as a part of the transaction that is open; what it throws is returned, if it changed nothing. */
  part(fn: () => void): { readonly refused: unknown } | null
  onCommit(effect: () => void): void
  onRollback(undo: () => void): void
  touch(): void
}

function createUnit(db: Database, changed: () => void): Unit {
  const begin = db.prepare('BEGIN IMMEDIATE')
  const commit = db.prepare('COMMIT')
  const rollback = db.prepare('ROLLBACK')
  let effects: (() => void)[] = []
  let undos: (() => void)[] = []
  let changes = 0

  const take = (): { effects: (() => void)[]; undos: (() => void)[]; changes: number } => {
    const taken = { effects, undos, changes }
    effects = []
    undos = []
    changes = 0
    return taken
  }
  const undo = (): void => {
    // SQLite ends the transaction itself on some errors, a full disk among them
    if (db.inTransaction) rollback.run()
    for (const step of take().undos.reverse()) step()
  }
  const run = <T>(fn: () => T): T => {
    begin.run()
    try {
      const result = fn()
      commit.run()
      return result
    } catch (error) {
      undo()
      throw toStoreError(error)
    }
  }
  return {
    transact(fn) {
      const result = run(fn)
      const done = take()
      for (const effect of done.effects) effect()
      if (done.changes > 0) changed()
      return result
    },
    part(fn) {
      const before = { changes, effects: effects.length, undos: undos.length }
      try {
        fn()
        return null
      } catch (error) {
        if (changes !== before.changes || !db.inTransaction) throw error
        effects.length = before.effects
        undos.length = before.undos
        return { refused: error }
      }
    },
    onCommit: (effect) => void effects.push(effect),
    onRollback: (step) => void undos.push(step),
    touch: () => void changes++,
  }
}

export function createTransactions(db: Database, options: Options): Transactions {
  const listeners = new Set<() => void>()
  const unit = createUnit(db, () => {
    for (const listener of listeners) listener()
  })
  let queue: Job[] = []
  let closed = false

  const runAlone = (job: Job): void => {
    try {
      unit.transact(job.run)
    } catch (error) {
      job.fail(error)
      return
    }
    job.settle()
  }
  const runTogether = (batch: readonly Job[]): ReadonlyMap<Job, unknown> => {
    const refusals = new Map<Job, unknown>()
    unit.transact(() => {
      for (const job of batch) {
        const refusal = unit.part(job.run)
        if (refusal !== null) refusals.set(job, refusal.refused)
      }
    })
    return refusals
  }
  const flush = (): void => {
    const batch = queue
    queue = []
    if (batch.length === 0) return
    let refusals: ReadonlyMap<Job, unknown>
    try {
      refusals = runTogether(batch)
    } catch (error) {
      // each alone would meet the same full disk
      for (const job of batch) if (isFull(error)) job.fail(error)
      else runAlone(job)
      return
    }
    for (const job of batch) {
      if (refusals.has(job)) job.fail(refusals.get(job))
      else job.settle()
    }
  }
  const enqueue = <T>(fn: () => T, resolve: (value: T) => void, fail: (error: unknown) => void): void => {
    let result: { readonly value: T } | undefined
    const run = (): void => void (result = { value: fn() })
    const settle = (): void => {
      if (result !== undefined) resolve(result.value)
    }
    if (queue.length === 0) setImmediate(flush)
    queue.push({ run, settle, fail })
  }
  const writeNow = <T>(fn: () => T): T => {
    flush()
    try {
      return unit.transact(fn)
    } catch (error) {
      if (isFull(error) && options.freeReserve()) return unit.transact(fn)
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
  const write = <T>(fn: () => T): Promise<T> =>
    closed ? Promise.reject(new Error('the store is closed')) : new Promise<T>((resolve, reject) => enqueue(fn, resolve, reject))
  return { write, writeNow, onCommit: unit.onCommit, onRollback: unit.onRollback, touch: unit.touch, onChange, close }
}
