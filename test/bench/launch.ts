import type { Founder } from '../helpers/founder.ts'
import { type RunningHost, World } from '../helpers/world.ts'
import { openNodeFloor } from './floors.ts'
import { compare, type Row, timed } from './measure.ts'

interface Host {
  readonly founder: Founder
  readonly host: RunningHost
}

/** Milliseconds from the request, over an open connection, until both the reply and what else is waited for are here. */
async function launchMs(founder: Founder, reached: Promise<unknown>): Promise<number> {
  const ms = await timed(() => Promise.all([founder.launch('coder'), reached]))
  await founder.stop('coder')
  return ms
}

/** The host logs a hello when it has accepted it. */
const helloMs = ({ founder, host }: Host): Promise<number> => launchMs(founder, host.logs('session said hello'))

/** One durable round trip more than hello. */
async function claimedMs({ founder }: Host): Promise<number> {
  const { records } = (await founder.client.call('trail.head')) as { records: number }
  return launchMs(founder, founder.trail({ kind: 'role.claimed', after: records, waitMs: 30_000 }))
}

/** A launch whose clone is kept and current, and one without any project, over bubblewrap with the real policy + `node -e 0`. */
export async function launch(): Promise<Row[]> {
  const floor = await openNodeFloor()
  const row = async (
    name: string,
    { project, ms, targets = { gate: null, goal: null } }: { project: boolean; ms: typeof helloMs; targets?: Pick<Row, 'gate' | 'goal'> },
  ): Promise<Row> => {
    await using world = new World({ project })
    const host = await world.start()
    const founder = await world.founder()
    return await compare({ row: name, unit: 'ms', ...targets, rounds: 15, ours: () => ms({ founder, host }), floor })
  }
  return [
    await row('launch to hello, clone kept and current / bwrap + node', { project: true, ms: helloMs, targets: { gate: 1.5, goal: 1.25 } }),
    await row('launch to hello, no project / bwrap + node', { project: false, ms: helloMs }),
    await row('launch to role claimed, clone kept and current / bwrap + node', { project: true, ms: claimedMs }),
  ]
}
