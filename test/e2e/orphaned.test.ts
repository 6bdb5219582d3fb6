import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { expect, test } from 'vitest'
import { PROGRAM, processesOf, World } from '../helpers/world.ts'

test('a host whose terminal or reader is gone goes on, and still stops in order', async () => {
  await using world = new World()
  const host = spawn(process.execPath, [PROGRAM, 'bus', 'start', '--business', 'acme', '--pm'], {
    cwd: world.root,
    env: world.env,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  await once(host.stdout, 'data')
  let out = ''
  for await (const chunk of host.stdout) {
    out += String(chunk)
    if (out.includes('ready')) break
  }
  host.stdout.destroy()
  host.stderr.destroy()
  // each of these is a line that nobody reads
  for (let n = 0; n < 3; n++) expect(await world.ask('pm', `SAY ${String(n)}`)).toBe(String(n))
  const gone = once(host, 'exit')
  host.kill('SIGTERM')
  expect((await gone)[0]).toBe(0)
  expect(processesOf(world.root)).toEqual([])
})
