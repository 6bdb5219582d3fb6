import { createHash } from 'node:crypto'
import { lstatSync, readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import Database from 'better-sqlite3'
import { processesOf } from './world.ts'

/** What the client was told, so that it must be so after any crash. */
export interface Ledger {
  readonly messages: ReadonlyMap<string, string>
  readonly tasks: readonly string[]
  /** Runs whose launch was answered with ok. */
  readonly launched: readonly string[]
  /** Runs whose end was answered, with its reason. */
  readonly ended: ReadonlyMap<string, string>
}

interface Place {
  /** The world's root. */
  readonly root: string
  readonly data: string
  readonly business: string
  /** The one host that may live now; null: none. */
  readonly host: number | null
  /** An env root whose content was given up may be gone. */
  readonly givenUp: readonly string[]
}

const SOCKETS = ['bus.sock', 'control.sock', 'git.sock', 'launch.sock']
const TEMPORARY = /^\.mosaic-new-|^\.new-|\.new$|\.tmp$|^tmp_|\.lock$/

const names = (dir: string): string[] => {
  try {
    return readdirSync(dir).sort()
  } catch {
    return []
  }
}

/** Every file and directory below, but what repositories keep in objects/. */
function walk(dir: string): string[] {
  return names(dir).flatMap((name) => {
    const path = join(dir, name)
    return lstatSync(path).isDirectory() && name !== 'objects' ? [path, ...walk(path)] : [path]
  })
}

const differ = (what: string, found: readonly string[], wanted: readonly string[]): string[] => {
  const extra = found.filter((item) => !wanted.includes(item))
  const missing = wanted.filter((item) => !found.includes(item))
  return [...extra.map((item) => `${what}: ${item} is left over`), ...missing.map((item) => `${what}: ${item} is missing`)]
}

function judgeProcesses({ root, host }: Place): string[] {
  return differ('process', processesOf(root).map(String), host === null ? [] : [String(host)])
}

/** Held locks by inode, as the kernel lists them. proc(5) */
export function heldLocks(): ReadonlySet<string> {
  const inodes = readFileSync('/proc/locks', 'utf8').matchAll(/FLOCK .*? [0-9a-f]+:[0-9a-f]+:(\d+) /g)
  return new Set([...inodes].map(([, inode]) => inode ?? ''))
}

function judgeLocks({ data, business }: Place): string[] {
  const held = heldLocks()
  return names(join(data, 'envs', business))
    .map((env) => join(data, 'envs', business, env, 'lock'))
    .filter((path) => held.has(String(lstatSync(path, { throwIfNoEntry: false })?.ino)))
    .map((path) => `lock: ${path} is held`)
}

function judgeSockets({ data, host }: Place): string[] {
  const found = names(join(data, 'bus-host')).filter((name) => name.endsWith('.sock'))
  return differ('socket', found, host === null ? [] : SOCKETS)
}

interface Session {
  readonly run: string
  readonly state: string
  readonly reason: string | null
  readonly env: string
}

/** Rows and launch log: one end for each launch, none without, and nothing on disk of a run that is in neither. */
function judgeRuns(db: Database.Database, { data, business, givenUp }: Place, ledger: Ledger): string[] {
  const sessions = db.prepare<[], Session>('SELECT run, state, reason, env FROM sessions').all()
  const ends = db.prepare<[], string>("SELECT run FROM launch_log WHERE event = 'end'").pluck().all()
  const launches = db.prepare<[], string>("SELECT run FROM launch_log WHERE event = 'launch'").pluck().all()
  const started = db.prepare<[], string>("SELECT subject FROM trail WHERE kind = 'session.started'").pluck().all()
  const recorded = db.prepare<[], string>("SELECT subject FROM trail WHERE kind = 'session.ended'").pluck().all()
  const runs = sessions.map(({ run }) => run)
  const envs = [...new Set(sessions.map(({ env }) => env))]
  const twice = [ends, recorded].flatMap((list) => list.filter((run, index) => list.indexOf(run) !== index))
  return [
    ...sessions.filter(({ state }) => state !== 'ended').map(({ run, state }) => `run ${run} is ${state}`),
    ...differ('launch without row, or row without launch', runs, launches),
    ...differ('end without launch, or launch without end', ends, launches),
    ...differ('session.started', started, launches),
    ...differ('session.ended', recorded, launches),
    ...twice.map((run) => `run ${run} has two ends`),
    ...differ('run directory', names(join(data, 'launches', business)), launches),
    ...differ('env root', [...names(join(data, 'envs', business)), ...givenUp], [...envs, ...givenUp]),
    ...ledger.launched.filter((run) => !launches.includes(run)).map((run) => `run ${run} was answered and is not there`),
    ...[...ledger.ended]
      .filter(([id, reason]) => sessions.find(({ run }) => run === id)?.reason !== reason)
      .map(([id, reason]) => `run ${id} was answered ${reason}`),
  ]
}

/** The PM is told of each run that a hard death ended, once. */
function judgeNotes(db: Database.Database): string[] {
  const lost = db.prepare<[], string>("SELECT run FROM sessions WHERE reason = 'host-lost'").pluck().all()
  const notes = db
    .prepare<[], string>("SELECT body FROM messages WHERE recipient = 'pm' AND from_kind = 'host' AND subject LIKE 'the bus host died%'")
    .pluck()
    .all()
  const told = (run: string): number => notes.filter((note) => note.includes(run)).length
  return lost.filter((run) => told(run) !== 1).map((run) => `run ${run} was lost, and the PM was told ${String(told(run))} times`)
}

function judgeMessages(db: Database.Database, { messages, tasks }: Ledger): string[] {
  const body = db.prepare<[number], string>('SELECT body FROM messages WHERE seq = ?').pluck()
  const task = db.prepare<[string], number>('SELECT 1 FROM tasks WHERE id = ?').pluck()
  return [
    ...[...messages].filter(([id, text]) => body.get(Number(id.slice(1))) !== text).map(([id]) => `message ${id} was acknowledged and is lost`),
    ...tasks.filter((id) => task.get(id) === undefined).map((id) => `task ${id} was acknowledged and is lost`),
  ]
}

interface Record {
  readonly seq: number
  readonly at: string
  readonly kind: string
  readonly subject: string | null
  readonly actor_kind: string
  readonly actor_name: string
  readonly actor_run: string | null
  readonly body: string
  readonly hash: string
}

/** h(n) = SHA-256 of h(n-1) and the canonical row, worked out here anew. */
function nextHash(hash: string, { seq, at, kind, subject, actor_kind, actor_name, actor_run, body }: Record): string {
  const head = JSON.stringify([seq, at, kind, subject, actor_kind, actor_name, actor_run])
  return createHash('sha256')
    .update(`${hash}${head.slice(0, -1)},${body}]`)
    .digest('hex')
}

function judgeTrail(db: Database.Database): string[] {
  const rows = db.prepare<[], Record>('SELECT * FROM trail ORDER BY seq').all()
  const broken = rows.find((row, index) => row.seq !== index + 1 || row.hash !== nextHash(rows[index - 1]?.hash ?? '0'.repeat(64), row))
  return broken === undefined ? [] : [`the trail is broken at ${String(broken.seq)}`]
}

const judgeTemporaries = ({ data }: Place): string[] =>
  walk(data)
    .filter((path) => TEMPORARY.test(basename(path)) && basename(path) !== 'host.lock')
    .concat(walk(join(data, 'git', '.incoming')))
    .map((path) => `temporary: ${path}`)

/**
 * Judges a data root in which no session lives, from outside: the store opened read-only, /proc, the disk. What it returns
 * is what is wrong; nothing, when the crash before it cost nothing.
 */
export function judge(place: Place, ledger: Ledger): string[] {
  const db = new Database(join(place.data, 'mosaic.db'), { readonly: true })
  try {
    return [
      ...judgeRuns(db, place, ledger),
      ...judgeNotes(db),
      ...judgeMessages(db, ledger),
      ...judgeTrail(db),
      ...judgeProcesses(place),
      ...judgeLocks(place),
      ...judgeSockets(place),
      ...judgeTemporaries(place),
    ]
  } finally {
    db.close()
  }
}
