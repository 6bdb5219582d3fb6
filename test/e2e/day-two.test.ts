import { appendFileSync, existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { until, World } from '../helpers/world.ts'

interface BackupRow {
  readonly file: string
  readonly records: number
  readonly head: string
  readonly members: number
}

const trailOf = (world: World): Promise<{ records: number; head: string }> => world.must(['trail', 'head'])
/** Sends one message after another for as long as the work goes on, and at least a few. */
async function messagesDuring<T>(world: World, work: Promise<T>): Promise<T> {
  const control = await world.control()
  const state = { over: false }
  const done = work.finally(() => (state.over = true))
  for (let n = 0; n < 20 || !state.over; n++) await control.call('message.send', { to: 'reviewer', class: 'NOTE', body: `note ${String(n)}` })
  return done
}

/** What a lost disk takes: the data root and the configuration. */
function loseDisk(world: World): void {
  renameSync(world.data, join(world.root, 'lost-d'))
  renameSync(world.config, join(world.root, 'lost-c'))
}

describe('backup and restore', () => {
  test('a copy made while messages come in is whole, and starts again where it ended', async () => {
    await using world = new World({ project: true })
    const host = await world.start({ pm: true })
    await world.must(['task', 'create', 'Say hello', '--id', 'hello', '--project', 'stack', '--assignee', 'coder'])
    await world.must(['launch', 'coder', '--task', 'hello'])
    const file = join(world.root, 'b.tar')
    const row = await messagesDuring(world, world.must<BackupRow>(['backup', file]))
    expect(lstatSync(file).mode & 0o777).toBe(0o600)
    expect(readdirSync(join(world.data, 'bus-host')).filter((name) => name.startsWith('snapshot'))).toEqual([])
    const later = await trailOf(world)
    expect(later.records).toBeGreaterThanOrEqual(row.records)
    expect((await world.json(['trail', 'verify', '--head', row.head])).code).toBe(0)
    const live = await world.must<{ run: string }[]>(['ps'])

    const second = join(world.root, 'd2')
    const restored = await world.must<{ head: string; configDir: string | null }>(['restore', file, '--data-root', second])
    expect(restored).toMatchObject({ head: row.head, configDir: null })
    // the copy of a live run must not lead to its processes: both roots are on one machine
    const other = await world.run(['bus', 'start', '--detach', '--data-root', second])
    expect([other.code, other.stderr]).toEqual([0, ''])
    expect((await world.must<{ run: string }[]>(['ps'])).map(({ run }) => run)).toEqual(live.map(({ run }) => run))
    expect(await world.ask('pm', 'RUN echo alive')).toBe('alive')
    expect((await world.json(['trail', 'verify', '--head', row.head, '--data-root', second])).data).toMatchObject({ ok: true })
    const lost = await world.must<{ reason: string }[]>(['log', '--event', 'end', '--data-root', second])
    expect(lost.map(({ reason }) => reason)).toEqual(['host-lost', 'host-lost'])
    expect(await world.must<unknown[]>(['task', 'list', '--data-root', second])).toMatchObject([{ id: 'hello' }])
    expect((await world.json(['bus', 'stop', '--data-root', second])).code).toBe(0)
    await host.stop()
  })

  test('after a lost disk everything comes back, the configuration too, with no host in between', async () => {
    await using world = new World({ project: true })
    const host = await world.start({ pm: true })
    await world.must(['launch', 'coder'])
    await messagesDuring(world, Promise.resolve())
    await host.stop()
    const file = join(world.root, 'b.tar')
    const row = await world.must<BackupRow>(['backup', file])
    expect((await world.json(['backup', file])).error.code).toBe('config-exists')
    const yaml = readFileSync(join(world.config, 'businesses/acme.yaml'), 'utf8')
    const refs = world.git(join(world.data, 'git/acme/stack.git'), 'for-each-ref')
    loseDisk(world)
    // on the new machine nothing but the backup knows where the data root was
    const restored = await world.must<{ dataRoot: string; configDir: string }>(['restore', file])
    expect(restored).toMatchObject({ dataRoot: world.data, configDir: world.config })
    expect(readFileSync(join(world.config, 'businesses/acme.yaml'), 'utf8')).toBe(yaml)
    expect(world.git(join(world.data, 'git/acme/stack.git'), 'for-each-ref')).toBe(refs)
    world.git(join(world.data, 'git/acme/stack.git'), 'fsck', '--strict')
    for (const path of [world.data, join(world.data, 'git'), join(world.data, 'bus-host')]) expect(lstatSync(path).mode & 0o777).toBe(0o700)
    await world.start({ pm: true })
    expect((await world.json(['trail', 'verify', '--head', row.head])).data).toMatchObject({ ok: true, firstBad: null })
    expect(await world.ask('pm', 'RUN echo back')).toBe('back')
  })

  test('replaces nothing: a data root with anything in it, a running host, another store', async () => {
    await using world = new World()
    const empty = await world.json(['backup', join(world.root, 'none.tar')])
    expect([empty.code, empty.error.code]).toEqual([4, 'store-not-found'])
    expect(readdirSync(world.root)).not.toContain('none.tar')
    const host = await world.start()
    const file = join(world.root, 'b.tar')
    await world.must(['backup', file])
    const onto = await world.json(['restore', file])
    expect([onto.code, onto.error.code]).toEqual([3, 'data-root-not-empty'])
    await host.stop()
    const other = join(world.root, 'other')
    mkdirSync(other, { mode: 0o700 })
    writeFileSync(join(other, 'mine'), 'mine')
    expect((await world.json(['restore', file, '--data-root', other])).error.code).toBe('data-root-not-empty')
    expect(readdirSync(other)).toEqual(['mine'])
    rmSync(join(other, 'mine'))
    expect((await world.json(['restore', file, '--data-root', other])).code).toBe(0)
  })

  test('a damaged backup is refused before anything is made', async () => {
    await using world = new World()
    const host = await world.start()
    const file = join(world.root, 'b.tar')
    await world.must(['backup', file])
    await host.stop()
    const bytes = readFileSync(file)
    bytes[4000] = (bytes[4000] ?? 0) ^ 1
    writeFileSync(file, bytes)
    const other = join(world.root, 'other')
    const refused = await world.json(['restore', file, '--data-root', other])
    expect([refused.code, refused.error.code]).toEqual([3, 'backup-invalid'])
    expect(refused.error.message).toContain('store/mosaic.db')
    expect(existsSync(other)).toBe(false)
    expect(statSync(file).size).toBe(bytes.length)
  })
})

test("a long runner.log is put aside while its runner writes on, and 'logs' shows both", async () => {
  await using world = new World()
  const host = await world.start({ pm: true })
  const [pm] = await world.must<{ run: string }[]>(['ps'])
  const run = pm?.run ?? ''
  const { path } = await world.must<{ path: string }>(['logs', run, '--path'])
  const claimed = readFileSync(path, 'utf8')
  expect(claimed).toContain(`pm claimed by run ${run}`)
  const filling = `${'x'.repeat(99)}\n`.repeat(170_000)
  appendFileSync(path, filling)
  await until('the log is put aside', () => existsSync(`${path}.1`))
  await until('and emptied', () => statSync(path).size === 0)
  await world.must(['pause', 'pm'])
  await until('the runner has said so', () => readFileSync(path, 'utf8').endsWith(' paused\n'))
  expect(readFileSync(`${path}.1`, 'utf8')).toBe(claimed + filling)
  const shown = await world.must<{ text: string }>(['logs', run])
  expect(shown.text).toBe(claimed + filling + readFileSync(path, 'utf8'))
  await host.stop()
})
