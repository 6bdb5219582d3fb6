// Appends records to the store of the data root in argv[2] for ever; says on stdout the number of each that is durable.
import { systemClock } from '../../src/core/clock.ts'
import { silentLog } from '../../src/core/log.ts'
import { openStore } from '../../src/store/open.ts'

const store = openStore({ dataRoot: process.argv[2] ?? '', business: 'acme', log: silentLog, clock: systemClock })
const actor = { kind: 'host', name: 'host', run: null } as const

for (;;) {
  const batch = Array.from({ length: 7 }, (_none, n) => store.write(() => store.trail.append({ kind: 'x.test', subject: null, actor, body: { n } }).seq))
  const durable = Math.max(...(await Promise.all(batch)))
  process.stdout.write(`${String(durable)}\n`)
}
