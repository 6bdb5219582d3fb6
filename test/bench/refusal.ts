import { join } from 'node:path'
import { World } from '../helpers/world.ts'
import { echoMs, openEcho, openSqliteFloor } from './floors.ts'
import { compare, median, type Row } from './measure.ts'
import { CONTROL_HELLO, openWire, toFrame } from './wire.ts'

const REFUSALS = 200

/** A launch that the gate refuses, written to launch log and trail, over echo + one commit. */
export async function refusal(): Promise<Row[]> {
  await using world = new World()
  await using _host = await world.startDetached()
  await (await world.founder()).session('coder')
  const wire = await openWire(join(world.data, 'bus-host', 'control.sock'), CONTROL_HELLO)
  const echo = await openEcho()
  const single = openSqliteFloor(1)
  const frame = toFrame({ id: 1, method: 'launch', params: { instance: 'coder' } })
  const ours = async (): Promise<number> => {
    const times: number[] = []
    for (let n = 0; n < REFUSALS; n++) times.push(await wire.roundTrip(frame))
    return median(times)
  }
  const floor = async (): Promise<number> => (await echoMs(echo.path)) + single.commitMs()
  try {
    return [await compare({ row: 'a refused launch, p50 / echo + one commit', unit: 'ms', gate: 2, goal: 1.3, ours, floor })]
  } finally {
    wire.close()
    echo.close()
    single.close()
  }
}
