import { serveBusAlone } from './bus-host.ts'
import { cli } from './cli.ts'
import { harness } from './harness.ts'
import { idle } from './idle.ts'
import { launch } from './launch.ts'
import { messages } from './messages.ts'
import { parallel } from './parallel.ts'
import { push } from './push.ts'
import { refusal } from './refusal.ts'
import { restart, stop } from './stop.ts'
import { trail } from './trail.ts'
import type { Row } from './measure.ts'

const BENCHES: Readonly<Record<string, () => Promise<Row[]>>> = { launch, parallel, messages, refusal, push, stop, restart, idle, trail, cli, harness }

const round = (value: number): string => (value >= 1000 ? value.toFixed(0) : value.toPrecision(3))

/** Rates are to be high, everything else low. */
function verdict({ ours, ratio, unit, gate, goal }: Row): string {
  if (gate === null || goal === null) return ''
  const value = ratio ?? ours
  const reaches = (target: number): boolean => (unit === 'per s' ? value >= target : value <= target)
  return reaches(goal) ? 'goal' : reaches(gate) ? 'gate' : 'MISSED'
}

function print(row: Row, json: boolean): void {
  if (json) return void process.stdout.write(`${JSON.stringify(row)}\n`)
  const { row: name, ours, floor, ratio, unit, gate, goal, rounds } = row
  const over = floor === null || ratio === null ? ''.padEnd(19) : `/ ${round(floor).padStart(8)} = ${ratio.toFixed(2).padStart(6)}`
  const target = gate === null ? '' : `gate ${String(gate)}, goal ${String(goal)}: ${verdict(row)}`
  process.stdout.write(`${name.padEnd(62)} ${round(ours).padStart(8)} ${unit.padEnd(5)} ${over}  ${target}  (${String(rounds)} rounds)\n`)
}

async function runAll(args: readonly string[]): Promise<number> {
  const names = args.filter((arg) => !arg.startsWith('--'))
  const unknown = names.find((name) => !Object.hasOwn(BENCHES, name))
  if (unknown !== undefined) {
    process.stderr.write(`error: there is no bench ${unknown}; there are ${Object.keys(BENCHES).join(', ')}\n`)
    return 2
  }
  if (process.getuid?.() === 0) {
    process.stderr.write('error: the benches start bus hosts, and a bus host never runs as root\nhint: runuser -u NAME -- npm run bench\n')
    return 3
  }
  for (const [name, bench] of Object.entries(BENCHES)) {
    if (names.length > 0 && !names.includes(name)) continue
    for (const row of await bench()) print(row, args.includes('--json'))
  }
  return 0
}

const [first, ...rest] = process.argv.slice(2)
if (first === '--serve-bus') await serveBusAlone(rest[0] ?? '')
else process.exit(await runAll(process.argv.slice(2)))
