import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { childrenOf, statusOf } from '../../src/core/proc.ts'
import type { RunRow } from '../../src/protocol/rows.ts'
import { toBusiness } from '../helpers/seats.ts'
import { World } from '../helpers/world.ts'
import { type Row, single } from './measure.ts'

const SESSIONS = 30
const WATCH_MS = 20_000
const TICKS_A_SECOND = 100

/** CPU time used so far, in clock ticks: fields 14 and 15. proc(5) */
function ticksOf(pid: number): number {
  const stat = readFileSync(`/proc/${String(pid)}/stat`, 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return Number(fields[11]) + Number(fields[12])
}

/** `1234 kB` in megabytes. */
const megabytes = (text: string | undefined): number => (Number(text?.split(' ')[0] ?? 0) * 1024) / 1e6

/** Anonymous memory is what a process has for itself alone; of the undumpable runner it is all that another process may read. */
const anonymous = (pid: number): number => megabytes(statusOf(pid).RssAnon)

async function cpuPercent(pid: number): Promise<number> {
  const before = ticksOf(pid)
  const start = performance.now()
  await sleep(WATCH_MS)
  return ((ticksOf(pid) - before) / TICKS_A_SECOND / ((performance.now() - start) / 1000)) * 100
}

/** Monitor, pid 1 and runner of a session, in megabytes. */
const sessionMemory = ({ pid }: RunRow): { sandbox: number; runner: number } => {
  const [init = 0] = childrenOf(pid ?? 0)
  const [runner = 0] = childrenOf(init)
  return { sandbox: anonymous(pid ?? 0) + anonymous(init), runner: anonymous(runner) }
}

const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length

/** What thirty sessions that do nothing cost. */
export async function idle(): Promise<Row[]> {
  const names = Array.from({ length: SESSIONS }, (_, n) => `s${String(n)}`)
  await using world = new World()
  world.business = toBusiness(Object.fromEntries(names.map((name) => [name, {}])), { max: SESSIONS })
  world.configure()
  const host = await world.start()
  const before = anonymous(host.pid)
  const founder = await world.founder()
  for (let n = 0; n < SESSIONS; n += 5) await Promise.all(names.slice(n, n + 5).map((name) => founder.session(name)))
  const cpu = await cpuPercent(host.pid)
  const rows = (await founder.ps()).map(sessionMemory)
  const grown = (anonymous(host.pid) - before) / SESSIONS
  const sandbox = mean(rows.map((row) => row.sandbox))
  const runner = mean(rows.map((row) => row.runner))
  const node = 'of that, the runner (a Node process)'
  return [
    single({ row: 'host with 30 idle sessions: CPU', unit: '%', gate: 1, goal: 0.2 }, cpu),
    single({ row: 'host with 30 idle sessions: RSS', unit: 'MB', gate: 150, goal: 100 }, megabytes(statusOf(host.pid).VmRSS)),
    single({ row: 'memory that a session adds, private: host, sandbox, runner', unit: 'MB', gate: 20, goal: 12 }, grown + sandbox + runner),
    single({ row: node, unit: 'MB', gate: null, goal: null }, runner),
  ]
}
