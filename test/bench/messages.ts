import { join } from 'node:path'
import { type CallClient, connectCalls } from '../../src/client/connect.ts'
import { World } from '../helpers/world.ts'
import { openEcho, openSqliteFloor } from './floors.ts'
import { compare, median, type Row } from './measure.ts'
import { connect } from 'node:net'
import { once } from 'node:events'

const NOTE = { to: 'coder', class: 'NOTE', body: 'a message of the usual size, some sixty characters long .....' } as const
const MESSAGES = 4096
const PIPELINE = 64

/** Sends until `total` are acknowledged, each client with so many in flight; messages per second. */
async function sendAll(clients: readonly CallClient[], inFlight: number, total: number): Promise<number> {
  let left = total
  const lane = async (client: CallClient): Promise<void> => {
    while (left-- > 0) await client.call('message.send', NOTE)
  }
  const start = performance.now()
  await Promise.all(clients.flatMap((client) => Array.from({ length: inFlight }, () => lane(client))))
  return total / ((performance.now() - start) / 1000)
}

async function echoMs(path: string): Promise<number> {
  const socket = connect(path)
  await once(socket, 'connect')
  const times: number[] = []
  for (let n = 0; n < 100; n++) {
    const start = performance.now()
    socket.write('{"id":1,"method":"echo","params":{}}\n')
    await once(socket, 'data')
    times.push(performance.now() - start)
  }
  socket.destroy()
  return median(times)
}

/** Durable sends over the socket against raw SQLite, and a send that a waiting peer receives against echo + one commit. */
export async function messages(): Promise<Row[]> {
  await using world = new World()
  await world.start()
  const path = join(world.data, 'bus-host', 'control.sock')
  const clients: CallClient[] = []
  const open = async (count: number): Promise<readonly CallClient[]> => {
    while (clients.length < count) clients.push(await connectCalls(path, { protocol: 1, version: 'bench' }))
    return clients.slice(0, count)
  }
  const batch = openSqliteFloor(32)
  const single = openSqliteFloor(1)
  const echo = await openEcho()
  const rate = (row: string, count: number, inFlight: number, total: number, gate: number, goal: number, floor: () => number): Promise<Row> =>
    compare({ row, unit: 'per s', gate, goal, ours: async () => sendAll(await open(count), inFlight, total), floor })
  try {
    return [
      await rate('message.send: 1 client, 64 in flight / raw, 32 a transaction', 1, PIPELINE, MESSAGES, 0.45, 0.65, batch.rate),
      await rate('message.send: 64 clients / raw, 32 a transaction', 64, 1, MESSAGES, 0.3, 0.5, batch.rate),
      await rate('message.send: 1000 clients / raw, 32 a transaction', 1000, 1, MESSAGES, 0.35, 0.55, batch.rate),
      await rate('message.send: one in flight / raw, 1 a transaction', 1, 1, 500, 0.4, 0.6, single.rate),
      await compare({
        row: 'send to received by a waiting peer, p50 / echo + one commit',
        unit: 'ms',
        gate: 2,
        goal: 1.3,
        ours: () => deliveryMs(world, path),
        floor: async () => (await echoMs(echo.path)) + single.commitMs(),
      }),
    ]
  } finally {
    for (const client of clients) client.close()
    for (const floor of [batch, single, echo]) floor.close()
  }
}

/** A REQUEST from the founder that nobody holds up: sent, and seen by a waiting inbox as the NOTE it is. */
async function deliveryMs(world: World, path: string): Promise<number> {
  const receiver = await connectCalls(path, { protocol: 1, version: 'bench' })
  const sender = await connectCalls(path, { protocol: 1, version: 'bench' })
  const times: number[] = []
  let after: string | undefined
  try {
    for (let n = 0; n < 50; n++) {
      const waiting = receiver.call('inbox', { ...(after === undefined ? {} : { after }), waitMs: 10_000 }) as Promise<readonly { id: string }[]>
      const start = performance.now()
      await sender.call('message.send', { to: 'founder', class: 'NOTE', body: 'x' })
      after = (await waiting).at(-1)?.id ?? after
      times.push(performance.now() - start)
    }
    return median(times)
  } finally {
    receiver.close()
    sender.close()
  }
}
