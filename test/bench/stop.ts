import { toBusiness } from '../helpers/seats.ts'
import { World } from '../helpers/world.ts'
import { absolute, type Row, timed } from './measure.ts'

const LEFT = 10

/** The stop of an idle session, until nothing of it is left. */
export async function stop(): Promise<Row[]> {
  await using world = new World()
  await world.start()
  const founder = await world.founder()
  const ours = async (): Promise<number> => {
    await founder.session('coder')
    return (await timed(() => founder.stop('coder'))) / 1000
  }
  return [await absolute({ row: 'stop of a session until its tree is gone', unit: 's', gate: 1, goal: 0.3, ours })]
}

/** The start of a host, to ready, after one that was killed with ten sessions. */
export async function restart(): Promise<Row[]> {
  const names = Array.from({ length: LEFT }, (_, n) => `s${String(n)}`)
  await using world = new World()
  world.business = toBusiness(Object.fromEntries(names.map((name) => [name, {}])))
  world.configure()
  let host = await world.start()
  const ours = async (): Promise<number> => {
    const founder = await world.founder()
    await Promise.all(names.map((name) => founder.session(name)))
    await host.crash()
    return (
      (await timed(async () => {
        host = await world.start()
      })) / 1000
    )
  }
  return [await absolute({ row: 'start after SIGKILL with 10 sessions, until ready', unit: 's', gate: 2, goal: 1, rounds: 5, ours })]
}
