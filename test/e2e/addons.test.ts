import { cpSync, mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { packageRoot } from '../../src/core/paths.ts'
import type { CheckRow } from '../../src/doctor/check.ts'
import { World } from '../helpers/world.ts'

const ADDON = 'node_modules/better-sqlite3/build/Release/better_sqlite3.node'

/** An installation whose SQLite was built for something else than this Node, which is all that an upgrade of Node does to it. */
let install: string
beforeEach(() => {
  install = realpathSync(mkdtempSync('/tmp/ma-'))
  for (const name of ['bin', 'dist', 'package.json']) cpSync(join(packageRoot(), name), join(install, name), { recursive: true })
  mkdirSync(join(install, 'node_modules'))
  for (const name of readdirSync(join(packageRoot(), 'node_modules')).filter((entry) => entry !== 'better-sqlite3' && !entry.startsWith('.')))
    symlinkSync(join(packageRoot(), 'node_modules', name), join(install, 'node_modules', name))
  cpSync(join(packageRoot(), 'node_modules/better-sqlite3'), join(install, 'node_modules/better-sqlite3'), {
    recursive: true,
    filter: (path) => !/better-sqlite3\/(deps|src)$|obj\.target|\.a$/.test(path),
  })
})
afterEach(() => rmSync(install, { recursive: true, force: true }))

/** A new file: a host that runs has the old one mapped. */
function breakAddon(): void {
  rmSync(join(install, ADDON))
  writeFileSync(join(install, ADDON), 'built for another Node')
}

test('without an SQLite that loads: start, backup, restart and doctor say so, and how to build it anew', async () => {
  await using world = new World({ program: join(install, 'bin', 'mosaic.js') })
  const host = await world.start()
  expect((await world.json(['doctor', 'install'])).code).toBe(0)
  breakAddon()
  const hint = `cd ${install} && npm rebuild better-sqlite3`
  const missing = { code: 12, error: { code: 'program-missing', hint, message: expect.stringContaining(process.versions.node) as string } }
  // the host that has it loaded is left alone
  expect(await world.json(['bus', 'restart'])).toMatchObject(missing)
  expect((await world.must<{ pid: number }>(['bus', 'status'])).pid).toBe(host.pid)
  expect(await host.stop()).toBe(0)
  expect(await world.run(['bus', 'start'])).toMatchObject({ code: 12, stderr: expect.stringContaining(`hint: ${hint}\n`) as string })
  expect(await world.run(['bus', 'start', '--detach'])).toMatchObject({ code: 12, stderr: expect.stringContaining(hint) as string })
  expect(await world.json(['backup', join(world.root, 'b.tar')])).toMatchObject(missing)
  const { code, data } = await world.json(['doctor', 'install'])
  const addons = (data as { checks: CheckRow[] }).checks.find(({ name }) => name === 'addons')
  expect([code, addons]).toMatchObject([1, { state: 'fail', code: 'program-missing', remedy: hint }])
})
