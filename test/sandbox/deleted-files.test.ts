import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { measureDeleted } from '../../src/sandbox/deleted-files.ts'
import { until } from '../helpers/world.ts'
import { type Inside, openWorld, type World } from './world.ts'

let world: World
let inside: Inside
beforeEach(async () => {
  world = await openWorld()
  inside = await world.start()
})
afterEach(() => world[Symbol.asyncDispose]())

const MIB = 1024 ** 2
const measure = () => measureDeleted({ init: inside.session.init.pid, ours: [inside.runner.pid] }, statSync(world.workspace, { bigint: true }).dev)

/** A program in the sandbox that keeps a file of one MiB open, and says so by a file of its own. */
async function keep(path: string, { gone }: { readonly gone: boolean }): Promise<void> {
  const ready = join(world.workspace, `ready-${path.replaceAll(/\W/g, '')}`)
  const remove = gone ? `rm '${path}'` : ':'
  const command = `exec 3>'${path}'; head -c ${String(MIB)} /dev/zero >&3; ${remove}; touch '${ready}'; sleep 600 & exec sleep 600`
  await inside.run(`childProcess.spawn('/bin/sh', ['-c', ${JSON.stringify(command)}], { stdio: 'ignore', cwd: ${JSON.stringify(world.workspace)} }).unref()`)
  await until('the file is kept', () => existsSync(ready))
}

test('files that a sandbox keeps open without a name are counted once; those with a name, and those in memory, are not', async () => {
  expect(await measure()).toEqual({ sizeBytes: 0, complete: true })
  await keep('named (deleted)', { gone: false })
  await keep('/tmp/in-memory', { gone: true })
  expect(await measure()).toEqual({ sizeBytes: 0, complete: true })
  await keep('unnamed', { gone: true })
  const { sizeBytes, complete } = await measure()
  expect(complete).toBe(true)
  expect(sizeBytes).toBeGreaterThanOrEqual(MIB)
  expect(sizeBytes).toBeLessThan(2 * MIB)
})

test('a process that may not be looked into is no whole measurement', async () => {
  expect((await measure()).complete).toBe(true)
  await inside.run(`childProcess.spawn(process.execPath, ['-e', 'setInterval(() => undefined, 1e9)'], { stdio: 'ignore' }).unref()`)
  await until('it is undumpable', async () => !(await measure()).complete)
})
