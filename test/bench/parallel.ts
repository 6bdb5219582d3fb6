import { toBusiness } from '../helpers/seats.ts'
import { World } from '../helpers/world.ts'
import { openNodeFloor } from './floors.ts'
import { compare, type Row, timed } from './measure.ts'

const SESSIONS = 16

/** Sixteen launches at once, against as many bubblewraps with `node -e 0`; launches per second. */
export async function parallel(): Promise<Row[]> {
  const names = Array.from({ length: SESSIONS }, (_, n) => `s${String(n)}`)
  await using world = new World()
  world.business = toBusiness(Object.fromEntries(names.map((name) => [name, {}])), { max: SESSIONS })
  world.configure()
  await world.start()
  const founder = await world.founder()
  const node = await openNodeFloor()
  const rate = async (all: () => Promise<unknown>): Promise<number> => SESSIONS / ((await timed(all)) / 1000)
  const ours = async (): Promise<number> => {
    const launched = await rate(() => Promise.all(names.map((name) => founder.session(name))))
    await founder.client.call('stop', { all: true })
    return launched
  }
  const floor = (): Promise<number> => rate(() => Promise.all(names.map(() => node())))
  return [await compare({ row: '16 launches at once / 16 bwrap + node at once', unit: 'per s', gate: 0.7, goal: 0.9, ours, floor })]
}
