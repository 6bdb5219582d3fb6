import { join } from 'node:path'
import { connectCalls } from '../../src/client/connect.ts'
import { World } from '../helpers/world.ts'
import { openNodeFloor } from './floors.ts'
import { compare, type Row, timed } from './measure.ts'

/** Launch request to the runner's first act (its role.claim, which follows its hello), its clone kept and current, over bwrap + node -e 0. */
export async function launch(): Promise<Row[]> {
  await using world = new World({ project: true })
  await world.start()
  const control = await connectCalls(join(world.data, 'bus-host', 'control.sock'), { protocol: 1, version: 'bench' })
  const last = async (): Promise<number> => ((await control.call('trail.head', {})) as { records: number }).records
  const launchOnce = async (): Promise<number> => {
    const after = await last()
    const claimed = control.call('trail', { kind: 'role.claimed', after, waitMs: 30_000 })
    const ms = await timed(async () => {
      await control.call('launch', { instance: 'coder' })
      await claimed
    })
    await control.call('stop', { instance: 'coder' })
    return ms
  }
  try {
    const floor = await openNodeFloor()
    return [await compare({ row: 'launch: request to hello / bwrap + node', unit: 'ms', gate: 1.5, goal: 1.25, ours: launchOnce, floor })]
  } finally {
    control.close()
  }
}
