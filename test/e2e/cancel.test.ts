import { spawnSync } from 'node:child_process'
import { readFileSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { silentLog } from '../../src/core/log.ts'
import { createRepositoryLocks } from '../../src/git/lock.ts'
import type { RunRow } from '../../src/protocol/rows.ts'
import { until, World } from '../helpers/world.ts'

/** A root whose branch is a FIFO: the launch of a session that clones it hangs in its preparation, until `mend`. */
function hang(world: World): { mend: () => void } {
  const ref = join(world.root, 'stack', '.git', 'refs', 'heads', 'main')
  renameSync(ref, `${ref}.away`)
  expect(spawnSync('mkfifo', [ref]).status).toBe(0)
  return {
    mend() {
      rmSync(ref)
      renameSync(`${ref}.away`, ref)
    },
  }
}

/** The refusal of a launch that was stopped, and its run while it was being launched. */
async function launching(world: World, instance = 'coder'): Promise<{ run: string; refusal: Promise<string> }> {
  const launch = world.json(['launch', instance])
  const find = async (): Promise<RunRow | undefined> =>
    (await world.must<RunRow[]>(['ps'])).find((row) => row.instance === instance && row.state === 'starting')
  await until('it is being launched', async () => (await find()) !== undefined)
  return { run: (await find())?.run ?? '', refusal: launch.then(({ code, error }) => `${String(code)} ${error.message}`) }
}
const STOPPED = '3 coder launch refused: interrupted (it was stopped while it was being launched)'

test.each([
  ['stop', ({ run }: { run: string }) => ['stop', run]],
  ['stop by its instance', () => ['stop', 'coder']],
  ['stop --all', () => ['stop', '--all']],
  ['kill', ({ run }: { run: string }) => ['kill', run]],
] as const)('a launch that hangs in its preparation is undone by %s, and leaves nothing', async (_, words) => {
  await using world = new World({ project: true })
  await world.start()
  const { mend } = hang(world)
  const launch = await launching(world)
  const dry = await world.json([...words(launch), '--dry-run'])
  expect([dry.code, JSON.stringify(dry.data)]).toEqual([0, expect.stringContaining(launch.run)])
  const { code, data } = await world.json(words(launch))
  expect([code, JSON.stringify(data)]).toEqual([0, expect.stringContaining(launch.run)])
  expect(await launch.refusal).toBe(STOPPED)
  expect(await world.must(['ps', '-a'])).toEqual([])
  mend()
  expect((await world.json(['launch', 'coder'])).code).toBe(0)
})

test('a stop of all ends sessions beside launches', async () => {
  await using world = new World({ project: true })
  await world.start()
  const { run } = await world.must<RunRow>(['launch', 'reviewer'])
  const { mend } = hang(world)
  const launch = await launching(world)
  const rows = await world.must<RunRow[]>(['stop', '--all'])
  expect(rows.map((row) => [row.run, row.state]).sort()).toEqual(
    [
      [launch.run, 'starting'],
      [run, 'ended'],
    ].sort(),
  )
  expect(await launch.refusal).toBe(STOPPED)
  expect((await world.must<RunRow[]>(['ps', '-a'])).map((row) => [row.run, row.state])).toEqual([[run, 'ended']])
  mend()
})

/** The repository of the world's project, held as another process does, which a backup is. */
async function heldRepository(world: World): Promise<{ release: () => Promise<void> }> {
  const repository = join(world.data, 'git', 'acme', 'stack.git')
  let release: () => void = () => undefined
  const held = new Promise<void>((resolve) => (release = resolve))
  let taken: () => void = () => undefined
  const ready = new Promise<void>((resolve) => (taken = resolve))
  const over = createRepositoryLocks({ log: silentLog }).withLock(repository, { timeoutMs: 1000 }, () => (taken(), held))
  await ready
  return { release: () => (release(), over) }
}

test('a launch that waits for a repository that another process holds is stopped at once; so is the host', async () => {
  await using world = new World({ project: true })
  const host = await world.start()
  const { release } = await heldRepository(world)
  const one = await launching(world)
  expect((await world.json(['stop', one.run])).code).toBe(0)
  expect(await one.refusal).toBe(STOPPED)
  const two = await launching(world)
  expect(await host.stop()).toBe(0)
  expect(await two.refusal).toContain('coder launch refused: host-stopping')
  await release()
  await world.start()
  expect((await world.json(['launch', 'coder'])).code).toBe(0) // the control
})

test('a seat and a right that a reload takes away bind the live session at once', async () => {
  await using world = new World()
  await world.start({ pm: true })
  expect(await world.ask('pm', 'TOOL launch {"instance":"coder"}')).toContain('"run"')
  await world.must(['stop', 'coder'])
  const business = structuredClone(world.business)
  const pm = (business.roles as Record<string, { grants: string[] }>).pm
  business.roles = { ...(business.roles as object), boss: { ...pm }, pm: { ...pm, grants: ['task.read'] } }
  business.launch = { ...(business.launch as object), by: 'boss' }
  world.business = business
  world.configure()
  expect((await world.json(['bus', 'reload'])).code).toBe(0)
  expect(JSON.parse(await world.ask('pm', 'TOOL launch {"instance":"coder"}'))).toMatchObject({ ok: false, error: 'not-permitted' })
})

test('without a working bwrap a host with repositories starts, warns and tells what it knows', async () => {
  await using world = new World({ project: true })
  const first = await world.start()
  await world.must(['launch', 'coder'])
  await first.stop()
  world.system.sandbox = { bwrap: join(world.root, 'no-bwrap') }
  world.configure()
  const second = await world.start()
  expect(second.output()).toContain('no-bwrap is missing')
  expect((await world.must<unknown[]>(['log'])).length).toBeGreaterThan(0)
  expect((await world.json(['launch', 'coder'])).error.code).toBe('sandbox-unavailable')
  expect(readFileSync(join(world.root, 'stack', 'file.txt'), 'utf8')).toBe('one\n')
})
