import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { processesOf, World } from '../helpers/world.ts'

interface Row {
  readonly run: string
  readonly pid: number
  readonly runnerPid: number
  readonly state: string
  readonly reason: string | null
  readonly envRoot: string
  readonly runDir: string
}

const live = async (world: World, instance: string): Promise<Row | undefined> =>
  (await world.must<(Row & { instance: string })[]>(['ps'])).find((row) => row.instance === instance)

describe('a session', () => {
  test('answers the founder, and all of it is in the record', async () => {
    await using world = new World()
    await world.start({ pm: true })
    expect(await world.ask('pm', 'hello')).toMatch(/^echo: Message \S+ from founder, class REQUEST:\n\nhello$/)
    const kinds = (await world.must<{ kind: string }[]>(['trail'])).map((row) => row.kind)
    for (const kind of ['host.started', 'session.started', 'role.claimed', 'message.sent', 'message.answered']) expect(kinds).toContain(kind)
    expect(await world.must(['trail', 'verify'])).toMatchObject({ ok: true, firstBad: null })
    expect((await world.must<{ event: string; env: string }[]>(['log']))[0]).toMatchObject({ event: 'launch', env: 'created' })
  })

  test('stops in order, with everything it started', async () => {
    await using world = new World()
    await world.start({ pm: true })
    await world.ask('pm', 'RUN (setsid sleep 1000 &) ; true')
    const row = await live(world, 'pm')
    expect((await world.json(['stop', 'pm'])).code).toBe(0)
    expect(await world.must(['show', row?.run ?? ''])).toMatchObject({ state: 'ended', live: false, reason: 'stopped', exitCode: 0, signal: null })
    expect(processesOf(row?.envRoot ?? 'none')).toEqual([])
  })

  test('that is killed ends as killed, once, and its instance is free again', async () => {
    await using world = new World()
    await world.start({ pm: true })
    const row = await live(world, 'pm')
    expect((await world.json(['kill', row?.run ?? ''])).code).toBe(0)
    const ends = await world.must<{ run: string; reason: string; signal: string }[]>(['log', '--event', 'end'])
    expect(ends).toMatchObject([{ run: row?.run, reason: 'killed', signal: 'SIGKILL' }])
    expect((await world.json(['launch', 'pm'])).code).toBe(0)
  })

  test('is refused a second time, before anything is made', async () => {
    await using world = new World()
    await world.start({ pm: true })
    const before = readdirSync(join(world.data, 'launches', 'acme'))
    const refused = await world.json(['launch', 'pm'])
    expect([refused.code, refused.error.code]).toEqual([3, 'instance-running'])
    expect(refused.error.message).toMatch(/^pm launch refused: instance-running \(.+\)$/)
    expect(readdirSync(join(world.data, 'launches', 'acme'))).toEqual(before)
  })

  test('has runner.log, which nothing inside can rewrite', async () => {
    await using world = new World()
    await world.start({ pm: true })
    const row = await live(world, 'pm')
    const log = join(row?.runDir ?? '', 'runner.log')
    const forge = `for p in /proc/[0-9]*; do echo forged > $p/fd/2; done 2>/dev/null; echo forged > ${log}; echo forged >&2; echo tried`
    expect(await world.ask('pm', `RUN ${forge}`)).toMatch(/forged\ntried$/)
    expect(readFileSync(log, 'utf8')).toContain(`pm claimed by run ${row?.run ?? ''}`)
    expect(readFileSync(log, 'utf8')).not.toMatch(/^forged/m)
  })
})

describe('one after another', () => {
  test('an instance keeps its workspace, and --pm goes on with the last run', async () => {
    await using world = new World()
    const first = await world.start({ pm: true })
    await world.ask('pm', 'RUN echo mine > notes.txt')
    expect(await first.stop()).toBe(0)
    await world.start({ pm: true })
    expect(await world.ask('pm', 'RUN cat notes.txt')).toBe('mine')
    const launches = await world.must<{ env: string }[]>(['log', '--event', 'launch'])
    expect(launches.map((row) => row.env)).toEqual(['created', 'continued'])
  })
})
