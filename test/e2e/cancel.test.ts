import { spawnSync } from 'node:child_process'
import { readFileSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { until, World } from '../helpers/world.ts'

test('a launch that hangs in its preparation can be stopped, and leaves nothing', async () => {
  await using world = new World({ project: true })
  await world.start()
  const ref = join(world.root, 'stack', '.git', 'refs', 'heads', 'main')
  renameSync(ref, `${ref}.away`)
  expect(spawnSync('mkfifo', [ref]).status).toBe(0)
  const launch = world.json(['launch', 'coder'])
  await until('it is being launched', async () => (await world.must<{ state: string }[]>(['ps']))[0]?.state === 'starting')
  expect((await world.json(['stop', 'coder'])).code).toBe(0)
  const { code, error } = await launch
  expect([code, error.code]).toEqual([3, 'interrupted'])
  expect(error.message).toMatch(/^coder launch refused: interrupted \(it was stopped/)
  expect(await world.must(['ps', '-a'])).toEqual([])
  rmSync(ref)
  renameSync(`${ref}.away`, ref)
  expect((await world.json(['launch', 'coder'])).code).toBe(0)
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
