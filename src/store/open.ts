import * as fs from 'node:fs'
import type { Database } from 'better-sqlite3'
import type { Clock } from '../core/clock.ts'
import { AppError, messageOf } from '../core/errors.ts'
import type { Log } from '../core/log.ts'
import { connect } from './connect.ts'
import { createDatabase, ensureMarker } from './create.ts'
import { createStamp, type TableContext } from './database.ts'
import { examine } from './examine.ts'
import { createFeed, type Recorded } from './feed.ts'
import { asDiskFull } from './full-disk.ts'
import { judgeFiles, refuseStore, type StoreFiles, storeFiles } from './files.ts'
import { createLaunchLog, type LaunchLogTable } from './launch-log.ts'
import { createMessages, type MessagesTable } from './messages.ts'
import { readMigrations } from './migrations.ts'
import { createPushes, type PushesTable } from './pushes.ts'
import { createReserve, type Reserve } from './reserve.ts'
import { createReviews, type ReviewsTable } from './reviews.ts'
import { createSessions } from './sessions.ts'
import type { SessionsTable } from './session-types.ts'
import { loadSqlite } from './sqlite.ts'
import { createTasks, type TasksTable } from './tasks.ts'
import { createTrail, type TrailTable } from './trail.ts'
import { hasRoom } from './room.ts'
import { createTransactions, type Transactions } from './transactions.ts'
import { createUsage, type UsageTable } from './usage.ts'

export interface Store extends Pick<Transactions, 'write' | 'writeNow' | 'onCommit' | 'onRollback' | 'onChange'>, AsyncDisposable {
  readonly sessions: SessionsTable
  readonly launchLog: LaunchLogTable
  readonly trail: TrailTable
  readonly messages: MessagesTable
  readonly tasks: TasksTable
  readonly pushes: PushesTable
  readonly reviews: ReviewsTable
  readonly usage: UsageTable
  /** Called after each COMMIT with what it appended to the trail and the launch log, in that order; returns the end of it. */
  onRecorded(listener: (rows: readonly Recorded[]) => void): () => void
  /** Copies everything that is committed into a new file, while others read and write. */
  backup(path: string): Promise<void>
  /** Commits what is queued and closes the database; idempotent. */
  close(): void
}

export interface StoreDeps {
  readonly dataRoot: string
  /** The business that is served: messages, tasks, pushes and reviews of others in the same data root stay unseen. */
  readonly business: string
  readonly log: Log
  readonly clock: Clock
}

/** Opens the files, or makes them where there never was a store. Throws `store-…` or `trail-broken` and leaves them as they were; `disk-full`, `program-missing`. */
function openFiles(files: StoreFiles, clock: Clock): Database {
  loadSqlite()
  const found = judgeFiles(files, readMigrations().length)
  try {
    if (found === 'new') createDatabase(files)
    else examine(files)
    ensureMarker(files, `${createStamp(clock)()}\n`)
    return connect(files.db)
  } catch (error) {
    if (error instanceof AppError) throw error
    throw asDiskFull(files.db, error) ?? refuseStore(files, 'store-unreadable', messageOf(error), error)
  }
}

function createStore(db: Database, deps: StoreDeps, reserve: Reserve): Store {
  const tx = createTransactions(db, { freeReserve: () => reserve.free(), hasRoom: () => hasRoom(storeFiles(deps.dataRoot).db), log: deps.log })
  tx.onChange(() => reserve.refill())
  const feed = createFeed(tx)
  const context: TableContext = { db, tx, feed, business: deps.business, stamp: createStamp(deps.clock) }
  const close = (): void => {
    if (!db.open) return
    tx.close()
    db.close()
  }
  return {
    write: tx.write,
    writeNow: tx.writeNow,
    onCommit: tx.onCommit,
    onRollback: tx.onRollback,
    onChange: tx.onChange,
    onRecorded: feed.listen,
    sessions: createSessions(context),
    launchLog: createLaunchLog(context),
    trail: createTrail(context),
    messages: createMessages(context),
    tasks: createTasks(context),
    pushes: createPushes(context),
    reviews: createReviews(context),
    usage: createUsage(context),
    async backup(path) {
      await db.backup(path)
    },
    close,
    [Symbol.asyncDispose]() {
      close()
      return Promise.resolve()
    },
  }
}

/** Opens the store of a data root that the caller holds the host lock of. */
export function openStore(deps: StoreDeps): Store {
  const files = storeFiles(deps.dataRoot)
  const db = openFiles(files, deps.clock)
  for (const path of [files.db, files.marker]) fs.chmodSync(path, 0o600)
  const store = createStore(db, deps, createReserve(`${files.db}.reserve`, deps.log))
  deps.log.info({ records: store.trail.head().records }, 'store opened')
  return store
}
