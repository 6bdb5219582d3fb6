import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { World } from '../helpers/world.ts'
import { compare, type Row, timed } from './measure.ts'

async function nodeMs(): Promise<number> {
  return timed(async () => {
    await once(spawn(process.execPath, ['-e', '0'], { stdio: 'ignore', env: {} }), 'exit')
  })
}

/** A command that asks the host, over Node alone. */
export async function cli(): Promise<Row[]> {
  await using world = new World()
  await world.start()
  const ours = (): Promise<number> => timed(() => world.run(['ps']))
  return [await compare({ row: 'mosaic ps / node -e 0', unit: 'ms', gate: 3, goal: 2, rounds: 15, ours, floor: nodeMs })]
}
