import { createHash } from 'node:crypto'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { systemClock } from '../../src/core/clock.ts'
import { silentLog } from '../../src/core/log.ts'
import { openStore, type Store } from '../../src/store/open.ts'
import { World } from '../helpers/world.ts'
import { absolute, compare, median, type Row } from './measure.ts'
import { CONTROL_HELLO, openWire, toFrame } from './wire.ts'

const RECORDS = 1_000_000
const BATCH = 10_000
const PAGE = 100
const PAGES = 100

function fill(store: Store): void {
  const actor = { kind: 'session', name: 'coder', run: 'r0123456789ab' } as const
  for (let done = 0; done < RECORDS; done += BATCH) {
    store.writeNow(() => {
      for (let n = 0; n < BATCH; n++)
        store.trail.append({ kind: 'message.sent', subject: `m${String(done + n)}`, actor, body: { to: 'reviewer', class: 'NOTE' } })
    })
  }
}

const somewhere = (): number => Math.floor(Math.random() * (RECORDS - PAGE))

/** Records per second of SHA-256 over the same bytes, the rows in memory. */
function openHashFloor(path: string): () => number {
  const db = new Database(path, { readonly: true })
  const rows = db
    .prepare<[], Record<string, unknown>>('SELECT seq, at, kind, subject, actor_kind, actor_name, actor_run, body FROM trail ORDER BY seq LIMIT 100000')
    .all()
  db.close()
  const texts = rows.map((row) => JSON.stringify(Object.values(row)))
  return () => {
    let hash = '0'.repeat(64)
    const start = performance.now()
    for (const text of texts) {
      hash = createHash('sha256')
        .update(hash + text)
        .digest('hex')
    }
    return texts.length / ((performance.now() - start) / 1000)
  }
}

async function alone(store: Store, path: string): Promise<Row[]> {
  const page = (): number => {
    const times: number[] = []
    for (let n = 0; n < PAGES; n++) {
      const start = performance.now()
      Array.from(store.trail.list({ after: somewhere(), limit: PAGE }))
      times.push(performance.now() - start)
    }
    return median(times)
  }
  const verify = async (): Promise<number> => {
    const start = performance.now()
    const { ok, records } = await store.trail.verify({})
    if (!ok) throw new Error('the trail is broken')
    return records / ((performance.now() - start) / 1000)
  }
  return [
    await absolute({ row: 'a page of 100 from 10^6 trail records, SQLite', unit: 'ms', gate: 1, goal: 0.5, ours: page }),
    await compare({ row: 'trail verify / a bare SHA-256 loop', unit: 'per s', gate: 0.3, goal: 0.6, rounds: 3, ours: verify, floor: openHashFloor(path) }),
  ]
}

async function overSocket(world: World): Promise<Row> {
  await world.start()
  const wire = await openWire(join(world.data, 'bus-host', 'control.sock'), CONTROL_HELLO)
  const ours = async (): Promise<number> => {
    const times: number[] = []
    for (let n = 0; n < PAGES; n++) times.push(await wire.roundTrip(toFrame({ id: 1, method: 'trail', params: { after: somewhere(), limit: PAGE } })))
    return median(times)
  }
  try {
    return await absolute({ row: 'a page of 100 from 10^6 trail records, over the socket', unit: 'ms', gate: 5, goal: 2, ours })
  } finally {
    wire.close()
  }
}

/** Pages and the whole chain of a million records. */
export async function trail(): Promise<Row[]> {
  await using world = new World()
  const host = await world.start()
  await host.stop()
  const store = openStore({ dataRoot: world.data, business: 'acme', log: silentLog, clock: systemClock })
  fill(store)
  const rows = await alone(store, join(world.data, 'mosaic.db'))
  store.close()
  return [...rows, await overSocket(world)]
}
