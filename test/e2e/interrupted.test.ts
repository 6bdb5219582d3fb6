import { once } from 'node:events'
import { mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { processesOf, until, World } from '../helpers/world.ts'

/** A world with a place of its own for what is temporary. */
class Place extends World {
  readonly tmp = join(this.root, 't')

  static open(): Place {
    const place = new Place({ project: true })
    mkdirSync(place.tmp)
    return place
  }

  /** How the command ended, and what it left. */
  async stopped(words: readonly string[], signal: NodeJS.Signals, options: Parameters<World['interrupt']>[2] = {}): Promise<unknown> {
    const env = { TMPDIR: this.tmp, MOSAIC_CONFIG: words[0] === 'init' ? join(this.root, 'fresh') : this.config }
    const { code, stderr } = await this.interrupt(words, signal, { env, when: () => this.#somethingIsThere(), ...options })
    return { code, stderr, files: readdirSync(this.tmp), processes: processesOf(this.root) }
  }

  #somethingIsThere(): Promise<void> {
    return until('there is something temporary', () => readdirSync(this.tmp).length > 0)
  }
}

const NOTHING = { code: 130, stderr: expect.stringContaining('error: interrupted\n') as unknown, files: [], processes: [] }

/** Every verb that makes something which is gone afterwards; a backup's and a restore's have tests of their own. */
const VERBS = [['demo'], ['harness', 'probe'], ['doctor', 'sandbox'], ['init', 'stack']]
const SIGNALS = [
  { signal: 'SIGTERM', group: false },
  { signal: 'SIGINT', group: true },
] as const

test.each(VERBS.flatMap((words) => SIGNALS.map((how) => ({ words, ...how }))))(
  'mosaic $words leaves nothing: $signal, to all of them: $group',
  async ({ words, signal, group }) => {
    await using place = Place.open()
    expect(await place.stopped(words, signal, { group })).toEqual(NOTHING)
  },
)

test.each(SIGNALS)('nor does the demo in the middle of its story: $signal, to all of them: $group', async (how) => {
  await using place = Place.open()
  let host: number[] = []
  const when = async ({ stdout }: { stdout: NodeJS.ReadableStream }): Promise<void> => {
    await once(stdout, 'data')
    host = processesOf(join(place.tmp, 'mosaic-demo-'))
  }
  expect(await place.stopped(['demo'], how.signal, { group: how.group, when })).toEqual(NOTHING)
  // the host and its PM were there to be taken away
  expect(host.length).toBeGreaterThan(1)
})

test('the demo tells its story to the end, and leaves nothing', async () => {
  await using place = Place.open()
  const ran = await place.json(['demo'], { env: { TMPDIR: place.tmp } })
  expect(ran).toMatchObject({ code: 0, data: { left: null } })
  const scenes = (ran.data as { scenes: { beats: { text: string; outcome: string }[] }[] }).scenes
  expect(scenes.at(-1)?.beats.at(-1)).toMatchObject({
    text: 'mosaic bus stop',
    outcome: expect.stringMatching(/^stopped; the trail ends at [0-9a-f]{64}$/) as unknown,
  })
  expect([readdirSync(place.tmp), processesOf(place.root)]).toEqual([[], []])
})
