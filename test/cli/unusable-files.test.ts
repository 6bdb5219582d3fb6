import { spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type Answer, PROGRAM, World } from '../helpers/world.ts'

let world: World
beforeEach(() => {
  world = new World()
})
afterEach(() => world[Symbol.asyncDispose]())

function expectUnusable(answer: Answer, path: string): void {
  expect([answer.code, answer.error]).toMatchObject([3, { code: 'file-unusable', message: expect.stringContaining(path) as string }])
  expect(answer.error.hint).toMatch(/ls -ld \/|name a file/)
}

test('a file that cannot be used is a refusal with its path and a next step, for every verb that takes one', async () => {
  const host = await world.start()
  const locked = join(world.root, 'locked')
  const nowhere = join(world.root, 'nowhere')
  mkdirSync(locked, { mode: 0o500 })
  expectUnusable(await world.json(['trail', 'export', join(nowhere, 'x')]), join(nowhere, 'x'))
  expectUnusable(await world.json(['trail', 'export', join(locked, 'x')]), join(locked, 'x'))
  expectUnusable(await world.json(['backup', join(locked, 'x')]), join(locked, 'x'))
  expectUnusable(await world.json(['restore', world.root]), world.root)
  expectUnusable(await world.json(['restore', join(nowhere, 'x')]), join(nowhere, 'x'))
  const bundle = await world.json(['doctor', 'disk', '--bundle', join(nowhere, 'x')])
  expectUnusable(bundle, join(nowhere, 'x'))
  expect(bundle.error.data).toMatchObject({ checks: expect.arrayContaining([expect.objectContaining({ category: 'disk' })]) as unknown }) // what was found is there all the same
  expect((await world.run(['doctor', 'disk', '--bundle', join(nowhere, 'x')])).stdout).toContain('disk\n')
  expectUnusable(await world.json(['init', '/etc/passwd'], { env: { MOSAIC_CONFIG: join(world.root, 'c2') } }), '/etc/passwd')
  expectUnusable(await world.json(['init', nowhere], { env: { MOSAIC_CONFIG: join(world.root, 'c2') } }), nowhere)
  expectUnusable(await world.json(['init'], { env: { MOSAIC_CONFIG: join(locked, 'c') } }), join(locked, 'c'))
  expect(readdirSync(locked)).toEqual([])
  await host.stop()
  const log = world.write(join(world.data, 'bus-host', 'host.log'), '')
  chmodSync(log, 0)
  expectUnusable(await world.json(['bus', 'logs']), log)
  // the controls
  expect((await world.json(['backup', join(world.root, 'b.tar')])).code).toBe(0)
  chmodSync(log, 0o600)
  expect((await world.json(['bus', 'logs'])).code).toBe(0)
})

test('a name that is none is refused, and makes no file called -', async () => {
  for (const name of ['-', ''])
    for (const args of [
      ['backup', name],
      ['restore', name],
      ['trail', 'export', name],
    ])
      expect([args, (await world.json(args, { cwd: world.root })).error.code]).toEqual([args, 'usage'])
  expect(readdirSync(world.root)).not.toContain('-')
})

/** The command in a mount namespace where `dir` is a disk of 64 KiB that has no room left; what is in it afterwards. */
function onFullDisk(dir: string, command: string): { readonly code: number | null; readonly error: unknown; readonly left: string[] } {
  const script = `head -c 1M /dev/zero > '${dir}/filler' 2>/dev/null; ${command}; code=$?; echo; find '${dir}' -mindepth 1 ! -name filler; exit $code`
  const bwrap = ['--dev-bind', '/', '/', '--perms', '0700', '--size', '65536', '--tmpfs', dir, '--', 'sh', '-c', script]
  const { status, stdout } = spawnSync('bwrap', bwrap, { env: world.env, encoding: 'utf8' })
  const [envelope = '', ...left] = stdout.split('\n').filter((line) => line !== '')
  return { code: status, error: (JSON.parse(envelope) as { error?: unknown }).error, left }
}

test('a full disk is disk-full, and leaves neither half a file nor a folder', async () => {
  await using _ = await world.startDetached()
  const dir = join(world.root, 'small')
  mkdirSync(dir)
  const mosaic = (args: string): string => `'${process.execPath}' '${PROGRAM}' ${args} --json 2>/dev/null`
  for (const command of [
    mosaic(`trail export '${dir}/trail.jsonl'`),
    mosaic(`backup '${dir}/b.tar'`),
    mosaic(`doctor disk --bundle '${dir}/report.json'`),
    `MOSAIC_CONFIG='${dir}/c' ${mosaic('init')}`,
  ])
    expect([command, onFullDisk(dir, command)]).toMatchObject([command, { code: 3, error: { code: 'disk-full' }, left: [] }])
  writeFileSync(join(dir, 'x'), '')
  expect((await world.json(['trail', 'export', join(dir, 'trail.jsonl')])).code).toBe(0) // the control
  expect(existsSync(join(dir, 'trail.jsonl'))).toBe(true)
})
