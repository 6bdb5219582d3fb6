import type { Founder } from '../helpers/founder.ts'
import { World } from '../helpers/world.ts'
import { openNodeFloor } from './floors.ts'
import { compare, type Row, timed } from './measure.ts'

/** Milliseconds until the runner has said hello and claimed its role: one durable round trip more than hello. */
async function launchMs(founder: Founder, instance: string): Promise<number> {
  const { records } = (await founder.client.call('trail.head')) as { records: number }
  const claimed = founder.trail({ kind: 'role.claimed', after: records, waitMs: 30_000 })
  const ms = await timed(async () => {
    await Promise.all([founder.launch(instance), claimed])
  })
  await founder.stop(instance)
  return ms
}

/** A launch whose clone is kept and current, and one without any project, over bubblewrap with the real policy + `node -e 0`. */
export async function launch(): Promise<Row[]> {
  const floor = await openNodeFloor()
  const row = async (name: string, project: boolean, targets: { gate: number | null; goal: number | null }): Promise<Row> => {
    await using world = new World({ project })
    await world.start()
    const founder = await world.founder()
    return await compare({ row: name, unit: 'ms', ...targets, rounds: 15, ours: () => launchMs(founder, 'coder'), floor })
  }
  return [
    await row('launch to role claimed, clone kept and current / bwrap + node', true, { gate: 1.5, goal: 1.25 }),
    await row('launch to role claimed, no project / bwrap + node', false, { gate: null, goal: null }),
  ]
}
