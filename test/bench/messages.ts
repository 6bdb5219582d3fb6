import { join } from 'node:path'
import { connectCalls } from '../../src/client/connect.ts'
import { World } from '../helpers/world.ts'
import { openBusAlone } from './bus-host.ts'
import { echoMs, openEcho, openSqliteFloor, type SqliteFloor } from './floors.ts'
import { compare, median, type Row } from './measure.ts'
import { CONTROL_HELLO, openWire, toFrame, type Wire } from './wire.ts'

const NOTE = { to: 'coder', class: 'NOTE', body: 'a message of the usual size, some sixty characters long .....' } as const
const SEND = toFrame({ id: 1, method: 'message.send', params: NOTE })
const MESSAGES = 8192
const PIPELINE = 64
const DELIVERIES = 100

/** Messages per second until all are acknowledged, spread over the clients. */
async function rateOf(wires: readonly Wire[], inFlight: number, total: number): Promise<number> {
  const each = Math.ceil(total / wires.length)
  const start = performance.now()
  await Promise.all(wires.map((wire) => wire.pump(SEND, each, inFlight)))
  return (each * wires.length) / ((performance.now() - start) / 1000)
}

interface Pool {
  readonly take: (count: number) => Promise<readonly Wire[]>
  readonly close: () => void
}

function createPool(path: string): Pool {
  const wires: Wire[] = []
  return {
    async take(count) {
      while (wires.length < count) wires.push(await openWire(path, CONTROL_HELLO))
      return wires.slice(0, count)
    },
    close: () => {
      for (const wire of wires) wire.close()
    },
  }
}

async function sends(pool: Pool, batch: SqliteFloor, single: SqliteFloor): Promise<Row[]> {
  const rate = (row: string, count: number, inFlight: number, total: number, gate: number, goal: number, floor: () => number): Promise<Row> =>
    compare({ row, unit: 'per s', gate, goal, ours: async () => rateOf(await pool.take(count), inFlight, total), floor })
  return [
    await rate('message.send, 1 client, 64 in flight / raw, 32 a transaction', 1, PIPELINE, MESSAGES, 0.45, 0.65, batch.rate),
    await rate('message.send, 64 clients / raw, 32 a transaction', 64, 1, MESSAGES, 0.3, 0.5, batch.rate),
    await rate('message.send, 1000 clients / raw, 32 a transaction', 1000, 1, MESSAGES, 0.35, 0.55, batch.rate),
    await rate('message.send, one in flight / raw, 1 a transaction', 1, 1, 1000, 0.4, 0.6, single.rate),
  ]
}

/** Durable sends over the socket of a real host against raw SQLite; on the bus, a send until a waiting peer has it against echo + one commit. */
export async function messages(): Promise<Row[]> {
  const batch = openSqliteFloor(32)
  const single = openSqliteFloor(1)
  try {
    return [...(await withHost((pool) => sends(pool, batch, single))), await delivery(single)]
  } finally {
    batch.close()
    single.close()
  }
}

async function withHost(measure: (pool: Pool) => Promise<Row[]>): Promise<Row[]> {
  await using world = new World()
  await using _host = await world.startDetached()
  const pool = createPool(join(world.data, 'bus-host', 'control.sock'))
  try {
    return await measure(pool)
  } finally {
    pool.close()
  }
}

/** Median of sends to a peer that waits in message.receive, each acknowledged before the next. */
async function deliveryMs(path: string): Promise<number> {
  await using receiver = await connectCalls(path, { cap: 'receiver', protocol: 1 })
  await using sender = await connectCalls(path, { cap: 'sender', protocol: 1 })
  const times: number[] = []
  for (let n = 0; n < DELIVERIES; n++) {
    const waiting = receiver.call('message.receive', { waitMs: 10_000, max: 1 }) as Promise<readonly { id: string }[]>
    // the wait is known to the bus once a later call of the same connection is answered
    await receiver.call('message.owed')
    const start = performance.now()
    const sent = sender.call('message.send', { to: 'receiver', class: 'NOTE', body: 'x' })
    const [message] = await waiting
    times.push(performance.now() - start)
    await sent
    await receiver.call('message.ack', { ids: [message?.id] })
  }
  return median(times)
}

async function delivery(single: SqliteFloor): Promise<Row> {
  const bus = await openBusAlone()
  const echo = await openEcho()
  const floor = async (): Promise<number> => (await echoMs(echo.path)) + single.commitMs()
  try {
    return await compare({
      row: 'send to received by a waiting peer, p50 / echo + one commit',
      unit: 'ms',
      gate: 2,
      goal: 1.3,
      ours: () => deliveryMs(bus.path),
      floor,
    })
  } finally {
    echo.close()
    await bus.close()
  }
}
