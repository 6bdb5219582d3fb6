import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { createBwrap } from '../../src/sandbox/bwrap.ts'
import { locateNode } from '../../src/sandbox/node-program.ts'
import { helperPlan } from '../../src/sandbox/plan.ts'
import { spawnBwrap } from '../../src/sandbox/spawn.ts'
import { readSystem } from '../../src/sandbox/system.ts'
import { median, timed } from './measure.ts'
import { openWire, toFrame } from './wire.ts'

/** F_node: bubblewrap with the real policy and `node -e 0` in it, from spawn to its end, in ms. */
export async function openNodeFloor(): Promise<() => Promise<number>> {
  const bwrap = createBwrap(null)
  const forbidden = { trees: [], home: '/nonexistent' }
  const node = await locateNode(forbidden)
  const ids = { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 }
  return () =>
    timed(async () => {
      const plan = helperPlan({ system: readSystem({}), ...ids, env: {}, programs: node.programs, forbidden, binds: [], cwd: '/tmp' })
      const { child, block } = await spawnBwrap(bwrap, { plan, command: [node.path, '-e', '0'], lockFd: null, stdout: 'ignore', stderr: 'pipe' })
      block.end('x')
      child.stdio[0]?.end()
      await child.exited
    })
}

/** Enough for a checkpoint of the WAL, which ours pays too. */
const ROWS = 16_384

export interface SqliteFloor {
  /** Rows per second. */
  readonly rate: () => number
  /** Milliseconds that one transaction takes. */
  readonly commitMs: () => number
  readonly close: () => void
}

/** Raw better-sqlite3 as the store opens it (WAL, FULL), rows of a message's size, so many a transaction. */
export function openSqliteFloor(rowsPerTransaction: number): SqliteFloor {
  const dir = mkdtempSync('/tmp/mb-')
  const db = new Database(join(dir, 'floor.db'))
  db.pragma('journal_mode = WAL')
  db.pragma('synchronous = FULL')
  db.exec('CREATE TABLE message (id INTEGER PRIMARY KEY, recipient TEXT NOT NULL, body TEXT NOT NULL) STRICT')
  const insert = db.prepare('INSERT INTO message (recipient, body) VALUES (?, ?)')
  const transaction = db.transaction((rows: number) => {
    for (let row = 0; row < rows; row++) insert.run('coder', 'a message of the usual size, some sixty characters long .....')
  })
  const seconds = (transactions: number, rows: number): number => {
    const start = performance.now()
    for (let n = 0; n < transactions; n++) transaction.immediate(rows)
    return (performance.now() - start) / 1000
  }
  return {
    rate: () => {
      const transactions = Math.ceil(ROWS / rowsPerTransaction)
      return (transactions * rowsPerTransaction) / seconds(transactions, rowsPerTransaction)
    },
    commitMs: () => (seconds(50, 1) / 50) * 1000,
    close: () => {
      db.close()
      rmSync(dir, { recursive: true, force: true })
    },
  }
}

/** A server in a process of its own that sends each line back, on a Unix socket: the floor of a round trip. */
export async function openEcho(): Promise<{ readonly path: string; readonly close: () => void }> {
  const dir = mkdtempSync('/tmp/mb-')
  const path = join(dir, 'echo.sock')
  const program = `require('node:net').createServer((s) => s.on('data', (chunk) => s.write(chunk)).on('error', () => {})).listen(${JSON.stringify(path)}, () => process.send(1))`
  const child = spawn(process.execPath, ['-e', program], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  await once(child, 'message')
  return {
    path,
    close: () => {
      child.kill()
      rmSync(dir, { recursive: true, force: true })
    },
  }
}

/** Median round trip of a line. */
export async function echoMs(path: string): Promise<number> {
  const wire = await openWire(path)
  const frame = toFrame({ id: 1, method: 'echo', params: {} })
  const times: number[] = []
  for (let n = 0; n < 200; n++) times.push(await wire.roundTrip(frame))
  wire.close()
  return median(times)
}
