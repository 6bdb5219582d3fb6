import { renameSync, utimesSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { CallClient } from '../../src/client/connect.ts'
import { FAILPOINTS, type FailpointName } from '../../src/launch/failpoints.ts'
import { judge, type Ledger } from '../helpers/judge.ts'
import { type HostEnd, type RunningHost, until, World } from '../helpers/world.ts'

interface Stage {
  readonly world: World
  readonly control: CallClient
  /** Differs for each death. */
  readonly task: string
}

/** What the founder is doing when the host dies. `start` is no act: the host dies while it recovers, and the next one too. */
const ACTS = {
  launch: ({ control, task }: Stage) => control.call('launch', { instance: 'reviewer', task, request: 'SAY done' }),
  /** The root has changed since the last look at it. */
  changed: (stage: Stage) => {
    utimesSync(join(stage.world.root, 'stack', '.git', 'HEAD'), new Date(), new Date())
    return ACTS.launch(stage)
  },
  fresh: async ({ control }: Stage) => {
    await control.call('stop', { instance: 'coder' })
    await control.call('launch', { instance: 'coder', mode: 'fresh' })
  },
  refused: async (stage: Stage) => {
    const root = join(stage.world.root, 'stack')
    renameSync(root, `${root}.away`)
    await ACTS.launch(stage).finally(() => {
      renameSync(`${root}.away`, root)
    })
  },
  stop: ({ control }: Stage) => control.call('stop', { instance: 'coder' }),
  kill: async ({ control }: Stage) => {
    const [row] = (await control.call('ps', {})) as { run: string }[]
    await control.call('kill', { run: row?.run })
  },
  shutdown: ({ control }: Stage) => control.call('shutdown', {}),
} as const
type Act = keyof typeof ACTS | 'start'

/** Which act passes a failpoint, and at which time: the coder's launch, which proves that the host works, is the first. */
const launch = [['launch', 2]] as const
const start = [['start', 1]] as const
const PLANS = {
  'launch.admit': launch,
  'launch.claim': launch,
  'claim.pin': launch,
  'claim.lock': launch,
  'claim.flock': launch,
  'claim.inode-check': launch,
  'claim.read-owner': launch,
  'claim.decide': launch,
  'claim.reset': [['fresh', 1]],
  'claim.write-owner': [
    ['launch', 2],
    ['fresh', 2],
  ],
  'claim.directories': [
    ['launch', 2],
    ['fresh', 2],
  ],
  'claim.done': launch,
  'launch.claimed': launch,
  'launch.prepare': launch,
  // a kept clone is looked at by two helpers; then one looks at the root, one clones
  'launch.helper': [
    ['changed', 3],
    ['changed', 4],
  ],
  'launch.directory': launch,
  'launch.spawn': launch,
  'launch.settle': launch,
  'launch.settled': launch,
  'launch.unblock': launch,
  'launch.runner': launch,
  'launch.state': launch,
  'launch.commit': launch,
  'launch.adopt': launch,
  'launch.capability': launch,
  'launch.reply': launch,
  'launch.undo': [['refused', 1]],
  'launch.refuse': [['refused', 1]],
  'stop.row': [['stop', 1]],
  'stop.signal': [['stop', 1]],
  'stop.wait': [['stop', 1]],
  'stop.kill': [['kill', 1]],
  'end.record': [['stop', 1]],
  'end.recorded': [['stop', 1]],
  'end.release': [['kill', 1]],
  'end.released': [['stop', 1]],
  'host.doors': [['shutdown', 1]],
  'host.sessions': [['shutdown', 1]],
  'host.sockets': [['shutdown', 1]],
  'host.stopped': [['shutdown', 1]],
  'recover.kill': start,
  'recover.lock': start,
  'recover.traces': start,
  'recover.undo': start,
  'recover.end': start,
  'recover.ended': start,
  'recover.git': start,
  'host.listen': start,
  'host.started': start,
} as const satisfies Record<FailpointName, readonly (readonly [act: Act, pass: number])[]>

interface Death {
  readonly failpoint: string
  readonly act: Act
}

const toDeaths = (name: FailpointName): Death[] => PLANS[name].map(([act, pass]) => ({ act, failpoint: `${name}#${String(pass)}` }))

/** Where a host dies so that the next has to recover both a live run and a launch that was cut off. */
const BOTH_LEFT = 'launch.commit#2'

/** One data root that dies again and again; what the host acknowledged in between is kept in the ledger. */
class Lane {
  readonly world = new World({ project: true })
  readonly complaints: string[] = []
  readonly #ledger = { messages: new Map<string, string>(), tasks: [] as string[], launched: [] as string[], ended: new Map<string, string>() } satisfies Ledger
  deaths = 0
  /** Deaths after which there was something to recover: what the judge must be able to see. */
  seen = 0
  #last = 'nothing'
  #givenUp: readonly string[] = []

  #judge(host: RunningHost | null): string[] {
    const { root, data } = this.world
    return judge({ root, data, business: 'acme', host: host?.pid ?? null, givenUp: this.#givenUp }, this.#ledger)
  }

  /** A host that is ready has nothing left to show of the one before. */
  async begin(failpoint?: string): Promise<{ host: RunningHost; control: CallClient }> {
    const host = await this.world.start({ env: failpoint === undefined ? {} : { MOSAIC_FAILPOINT: failpoint } })
    this.complaints.push(...this.#judge(host).map((complaint) => `after ${this.#last}: ${complaint}`))
    const control = await this.world.control()
    await this.#prove(control)
    return { host, control }
  }

  /** The instance launches again, and claims its role. */
  async #prove(control: CallClient): Promise<void> {
    const { run } = (await control.call('launch', { instance: 'coder' })) as { run: string }
    this.#ledger.launched.push(run)
    const claimed = (await control.call('trail', { kind: 'role.claimed', subject: run, waitMs: 20_000 })) as unknown[]
    if (claimed.length !== 1) this.complaints.push(`after ${this.#last}: ${run} did not claim its role`)
  }

  /** Sends until the host is gone; what was acknowledged goes into the ledger. */
  async #flood(control: CallClient): Promise<void> {
    for (let n = 0; ; n++) {
      const body = `${this.#last} ${String(n)}`
      const { id } = (await control.call('message.send', { to: 'pm', class: 'NOTE', body })) as { id: string }
      this.#ledger.messages.set(id, body)
    }
  }

  async die({ failpoint, act }: Death): Promise<void> {
    const { host, control } = await this.begin(act === 'start' ? BOTH_LEFT : failpoint)
    this.#last = failpoint
    this.#givenUp = act === 'fresh' ? ['coder'] : []
    const task = `t-${String(this.deaths)}`
    await control.call('task.create', { id: task, title: 'a task', body: failpoint, assignee: 'reviewer' })
    this.#ledger.tasks.push(task)
    const flooding = this.#flood(control).catch(() => undefined)
    const acting = ACTS[act === 'start' ? 'launch' : act]({ world: this.world, control, task }).catch(() => undefined)
    await this.#expectDeath(failpoint, host.ended)
    await Promise.all([flooding, acting])
    if (act !== 'start') return
    for (let again = 0; again < 2; again++) await this.#expectDeath(failpoint, this.world.startInVain({ MOSAIC_FAILPOINT: failpoint }))
  }

  async #expectDeath(failpoint: string, ended: Promise<HostEnd>): Promise<void> {
    let end: HostEnd | undefined
    void ended.then((how) => (end = how))
    await until(`the host dies at ${failpoint}`, () => end !== undefined)
    expect([failpoint, end?.signal]).toEqual([failpoint, 'SIGKILL'])
    this.deaths++
    if (this.#judge(null).length > 0) this.seen++
  }

  /** The last host stops in order, and then nothing at all is left. */
  async finish(): Promise<void> {
    const { host } = await this.begin()
    this.#last = 'the stop'
    expect(await host.stop()).toBe(0)
    this.complaints.push(...this.#judge(null))
    await this.world[Symbol.asyncDispose]()
  }
}

async function runLane(deaths: readonly Death[]): Promise<Lane> {
  const lane = new Lane()
  const { host } = await lane.begin()
  await host.stop()
  for (const death of deaths) await lane.die(death)
  await lane.finish()
  return lane
}

test('a host that is killed at any failpoint costs nothing that was acknowledged and leaves nothing', { timeout: 180_000 }, async () => {
  const deaths = FAILPOINTS.flatMap(toDeaths)
  const lanes = await Promise.all([0, 1].map((lane) => runLane(deaths.filter((_death, index) => index % 2 === lane))))
  const complaints = lanes.flatMap((lane) => lane.complaints)
  const died = lanes.reduce((sum, lane) => sum + lane.deaths, 0)
  console.log(`${String(FAILPOINTS.length)} failpoints, ${String(died)} deaths, ${String(complaints.length)} left over`)
  expect(complaints).toEqual([])
  // all but the deaths at the very end of a stop leave something that a judge who sees must see
  expect(lanes.reduce((sum, lane) => sum + lane.seen, 0)).toBeGreaterThanOrEqual(died - 2)
})
