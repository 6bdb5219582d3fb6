import { launch } from './launch.ts'
import { messages } from './messages.ts'
import type { Row } from './measure.ts'

const BENCHES: Readonly<Record<string, () => Promise<Row[]>>> = { launch, messages }

const round = (value: number): string => (value >= 1000 ? value.toFixed(0) : value.toPrecision(4))

function print(row: Row, json: boolean): void {
  if (json) return void process.stdout.write(`${JSON.stringify(row)}\n`)
  const { row: name, ours, floor, ratio, unit, gate, goal, rounds } = row
  const target = gate === null ? '' : `gate ${String(gate)}  goal ${String(goal)}`
  process.stdout.write(
    `${name.padEnd(64)} ${round(ours).padStart(9)} / ${round(floor).padStart(9)} ${unit.padEnd(6)} = ${ratio.toFixed(2).padStart(6)}  ${target}  (${String(rounds)} rounds)\n`,
  )
}

const args = process.argv.slice(2)
const names = args.filter((arg) => !arg.startsWith('--'))
const unknown = names.find((name) => !Object.hasOwn(BENCHES, name))
if (unknown !== undefined) {
  process.stderr.write(`error: there is no bench ${unknown}; there are ${Object.keys(BENCHES).join(', ')}\n`)
  process.exit(2)
}
if (process.getuid?.() === 0) {
  process.stderr.write('error: the benches start bus hosts, and a bus host never runs as root\nhint: runuser -u NAME -- npm run bench\n')
  process.exit(3)
}
for (const [name, bench] of Object.entries(BENCHES)) {
  if (names.length > 0 && !names.includes(name)) continue
  for (const row of await bench()) print(row, args.includes('--json'))
}
