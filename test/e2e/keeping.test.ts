import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { World } from '../helpers/world.ts'

interface GcRow {
  readonly kind: string
  readonly name: string
  readonly action: string
  readonly why: string | null
}
interface RunRow {
  readonly run: string
  readonly runDir: string
  readonly envRoot: string
}

const brief = (rows: readonly GcRow[]): string[] => rows.map(({ kind, name, action }) => `${action} ${kind} ${name}`).sort()

/** Starts an instance, lets it do something and ends it. */
async function runOnce(world: World, instance: string, command: string): Promise<RunRow> {
  const { run } = await world.must<{ run: string }>(['launch', instance])
  await world.ask(instance, command)
  await world.must(['stop', instance])
  return world.must<RunRow>(['show', run])
}

const envs = (world: World): string => join(world.data, 'envs', 'acme')

/** A root of somebody else's and one of nobody's. */
function makeStrangers(world: World): void {
  for (const name of ['foreign', 'unowned']) {
    mkdirSync(join(envs(world), name, 'workspace'), { recursive: true, mode: 0o700 })
    writeFileSync(join(envs(world), name, 'workspace', 'precious'), 'precious')
  }
  cpSync(join(envs(world), 'pm', 'owner.json'), join(envs(world), 'foreign', 'owner.json'))
}

const COMMIT =
  'RUN cd stack && echo two > file.txt && git -c user.name=c -c user.email=c@example.invalid commit -qam two && echo x > ../../cache/x && git rev-parse HEAD'

describe('what runs leave', () => {
  test('goes by gc --apply once it is old enough, but never a live root, unpushed work, or what is not ours', async () => {
    await using world = new World({ project: true })
    world.system.keepRuns = '1ms'
    world.configure()
    await world.start({ pm: true })
    const coder = await runOnce(world, 'coder', COMMIT)
    const reviewer = await runOnce(world, 'reviewer', 'RUN echo y > ../cache/y; ls stack')
    const [pm] = await world.must<RunRow[]>(['ps'])
    makeStrangers(world)
    const due = [`cache coder`, `env-root reviewer`, `run-directory ${coder.run}`, `run-directory ${reviewer.run}`]

    const dry = await world.must<GcRow[]>(['gc'])
    expect(brief(dry)).toEqual(['kept env-root coder', ...due.map((what) => `reclaim ${what}`)].sort())
    expect(dry.find(({ action }) => action === 'kept')?.why).toContain('stack: unpushed')
    for (const path of [coder.runDir, reviewer.runDir, reviewer.envRoot]) expect(existsSync(path)).toBe(true)

    expect(brief(await world.must<GcRow[]>(['gc', '--apply']))).toEqual(['kept env-root coder', ...due.map((what) => `removed ${what}`)].sort())
    for (const path of [coder.runDir, reviewer.runDir, reviewer.envRoot]) expect(existsSync(path)).toBe(false)
    expect(readdirSync(envs(world)).sort()).toEqual(['coder', 'foreign', 'pm', 'unowned'])
    expect(readFileSync(join(coder.envRoot, 'workspace/stack/file.txt'), 'utf8')).toBe('two\n')
    for (const name of ['foreign', 'unowned']) expect(existsSync(join(envs(world), name, 'workspace/precious'))).toBe(true)

    expect(existsSync(pm?.runDir ?? '')).toBe(true)
    expect(await world.ask('pm', 'RUN echo alive')).toBe('alive')
    expect(await world.must<GcRow[]>(['gc', '--apply'])).toMatchObject([{ action: 'kept', name: 'coder' }])
    expect((await world.json(['logs', coder.run])).code).toBe(4)
    expect(await world.must(['show', coder.run])).toMatchObject({ run: coder.run, reason: 'stopped' })
    expect((await world.json(['trail', 'verify'])).data).toMatchObject({ ok: true })
    // a reclaimed root comes anew, the kept one as it was
    await world.must(['launch', 'reviewer'])
    expect(await world.must(['launch', 'coder'])).toMatchObject({ env: 'kept' })
    expect(await world.ask('coder', 'RUN cat stack/file.txt')).toBe('two')
  })

  test('is kept with work in it when its project has left the configuration, or stood beside every project', async () => {
    await using world = new World({ project: true })
    world.system.keepRuns = '1ms'
    world.configure()
    const host = await world.start()
    const coder = await runOnce(world, 'coder', COMMIT)
    const reviewer = await runOnce(world, 'reviewer', 'RUN echo mine > beside.txt')
    await host.stop()
    world.business = { ...world.business, projects: {} }
    world.configure()
    await world.start()
    const kept = (await world.must<GcRow[]>(['gc', '--apply'])).filter(({ action }) => action === 'kept')
    expect(kept.map(({ name, why }) => [name, why])).toEqual([
      ['coder', 'stack: unpushed'],
      ['reviewer', 'beside.txt: dirty'],
    ])
    expect((await world.json(['launch', 'coder', '--fresh'])).error).toMatchObject({ code: 'env-root-unsaved' })
    expect(readFileSync(join(coder.envRoot, 'workspace/stack/file.txt'), 'utf8')).toBe('two\n')
    expect(readFileSync(join(reviewer.envRoot, 'workspace/beside.txt'), 'utf8')).toBe('mine\n')
    expect(await world.must(['launch', 'reviewer', '--fresh', '--discard'])).toMatchObject({ env: 'reset' }) // the control
  })

  test('stays within keepRuns', async () => {
    await using world = new World({ project: true })
    await world.start({ pm: true })
    await runOnce(world, 'reviewer', 'RUN ls stack')
    expect(await world.must(['gc', '--apply'])).toEqual([])
  })

  test('is measured by env du, and moved aside by env release, which deletes nothing', async () => {
    await using world = new World({ project: true })
    await world.start({ pm: true })
    const coder = await runOnce(world, 'coder', COMMIT)
    const sizes = await world.must<{ env: string; sizeBytes: number }[]>(['env', 'du'])
    expect(sizes.map(({ env }) => env).sort()).toEqual(['coder', 'pm'])
    for (const { sizeBytes } of sizes) expect(sizeBytes).toBeGreaterThan(0)
    const busy = await world.json(['env', 'release', 'pm'])
    expect([busy.code, busy.error.code]).toEqual([3, 'env-root-busy'])
    const stillBusy = await world.json(['env', 'release', 'pm', '--dry-run'])
    expect([stillBusy.code, stillBusy.error]).toEqual([busy.code, busy.error])
    expect((await world.json(['env', 'release', 'coder', '--dry-run'])).code).toBe(0)
    expect((await world.json(['env', 'release', 'nothing', '--dry-run'])).error.code).toBe('env-not-found')
    expect(existsSync(coder.envRoot)).toBe(true)
    const { path } = await world.must<{ path: string }>(['env', 'release', 'coder'])
    expect(existsSync(coder.envRoot)).toBe(false)
    expect(readFileSync(join(path, 'workspace/stack/file.txt'), 'utf8')).toBe('two\n')
    expect((await world.json(['env', 'release', 'coder'])).error.code).toBe('env-not-found')
    expect(await world.must(['launch', 'coder'])).toMatchObject({ env: 'created' })
    expect(await world.ask('coder', 'RUN cat stack/file.txt')).toBe('one')
  })
})
