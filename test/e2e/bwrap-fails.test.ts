import { chmodSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { until, World } from '../helpers/world.ts'

/** A world whose project has a working repository already, as after a first day. */
async function withRepository(): Promise<World> {
  const world = new World({ project: true })
  const host = await world.start()
  await world.must(['repo', 'sync'])
  await host.stop()
  return world
}

function useBwrap(world: World, script: string): void {
  const path = world.write(join(world.root, 'bwrap'), script)
  chmodSync(path, 0o755)
  world.system.sandbox = { bwrap: path }
  world.configure()
}

const UID_MAP = '#!/bin/sh\necho "bwrap: setting up uid map: Permission denied" >&2\nexit 1\n'
/** Real, but told to bind what is not there: it fails in the child that it has made. */
const BAD_BIND = '#!/bin/sh\ncase $1 in --help) exec /usr/bin/bwrap --help;; esac\nexec /usr/bin/bwrap --bind /proc/nonexistent /proc/nonexistent "$@"\n'

test.each([
  ['before it has made anything', UID_MAP, 'setting up uid map: Permission denied'],
  ['in the sandbox that it has made', BAD_BIND, '/proc/nonexistent'],
])('a bwrap that fails %s, beside a working repository: the host starts, warns and refuses launches', async (_, script, words) => {
  await using world = await withRepository()
  useBwrap(world, script)
  const host = await world.start()
  await until('it has warned', () => host.output().includes('no session can be launched'))
  expect(host.output()).toMatch(/warning: the working repositories are not looked at yet: .*bwrap failed/)
  const refused = await world.json(['launch', 'coder'])
  expect([refused.code, refused.error.code]).toEqual([3, 'sandbox-unavailable'])
  expect(refused.error.message).toContain(words)
  // the repair is not lost with the failure: with a bwrap that works a launch makes up for it
  delete world.system.sandbox
  world.configure()
  await world.must(['bus', 'reload'])
  await world.must(['launch', 'coder'])
})

test('with --pm it exits 3 and says why', async () => {
  await using world = await withRepository()
  useBwrap(world, UID_MAP)
  const ran = await world.run(['bus', 'start', '--pm'])
  expect(ran.code).toBe(3)
  expect(ran.stderr).toMatch(/^PM launch refused: sandbox-unavailable \(.*setting up uid map: Permission denied\)$/m)
})
