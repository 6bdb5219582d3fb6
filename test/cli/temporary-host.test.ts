import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { startTemporaryHost } from '../../src/cli/temporary-host.ts'
import { AppError } from '../../src/core/errors.ts'
import { createScope, type Scope } from '../../src/core/scope.ts'
import { processesOf, until, World } from '../helpers/world.ts'

const dir = mkdtempSync('/tmp/mosaic-stand-in-')
const [, program = ''] = process.argv
const scopes: Scope[] = []
beforeAll(() => void (process.argv[1] = join(dir, 'program.mjs')))
afterEach(async () => {
  for (const scope of scopes.splice(0)) await scope.close()
})
afterAll(() => {
  process.argv[1] = program
  rmSync(dir, { recursive: true })
})

/** Starts a program that does this in the place of a bus host. */
function start(source: string, signal = new AbortController().signal): ReturnType<typeof startTemporaryHost> {
  writeFileSync(join(dir, 'program.mjs'), source)
  const scope = createScope()
  scopes.push(scope)
  return startTemporaryHost({ env: { PATH: process.env.PATH }, words: [], signal }, scope)
}

const LIVES = 'const life = setInterval(() => undefined, 1000); process.once("SIGTERM", () => clearInterval(life))'
const NO_SOCKET = { code: 'socket-path-too-long', message: 'the path is 120 bytes long', hint: 'choose a shorter dataRoot' }

test('its word may come in pieces, and after lines of its log', async () => {
  const cut = `process.stderr.write('{"level":30}\\nsetting up\\n'); process.stdout.write('{"ok":tr'); setImmediate(() => process.stdout.write('ue}\\n'))`
  const host = await start(`${cut}\n${LIVES}\nprocess.once("SIGTERM", () => console.error('stopped; all is well'))`)
  expect(await host.stop()).toBe('stopped; all is well')
  // it has ended; to stop it again is no wait for an end that was
  expect(await host.stop()).toBe('stopped; all is well')
})

test.each([
  [{ ...NO_SOCKET, code: 'disk-full', hint: 'mosaic gc --apply' }, 'mosaic gc --apply'],
  [{ ...NO_SOCKET, code: 'sandbox-unavailable', hint: null }, 'mosaic doctor'],
  // what shortens the path of a place that we chose
  [NO_SOCKET, 'TMPDIR=DIR before the command, with a shorter DIR'],
])('a refused start is refused with its own code and words: %j', async (error, hint) => {
  const refused = start(`console.log('${JSON.stringify({ ok: false, error })}'); process.exitCode = 3`)
  await expect(refused).rejects.toMatchObject({ code: error.code, message: error.message, hint })
})

test('one that ends without a word is said to, with what it said to people', async () => {
  const ended = start(`console.error('{"level":50}'); console.error('out of files'); process.kill(process.pid, 'SIGKILL')`)
  await expect(ended).rejects.toMatchObject({ code: 'internal', message: 'the temporary bus host ended before it was ready (SIGKILL; out of files)' })
})

test('one that hangs is waited for until interrupted, and taken away', async () => {
  const interrupt = new AbortController()
  const hangs = start(LIVES, interrupt.signal)
  await until('it runs', () => processesOf(dir).length === 1)
  interrupt.abort(new AppError('interrupted', 'interrupted'))
  await expect(hangs).rejects.toMatchObject({ code: 'interrupted' })
  for (const scope of scopes.splice(0)) await scope.close()
  expect(processesOf(dir)).toEqual([])
})

test('a refusal of the real one is what the demo says', async () => {
  await using world = new World()
  const TMPDIR = join(world.root, 'x'.repeat(90))
  mkdirSync(TMPDIR)
  const { code, error } = await world.json(['demo'], { env: { TMPDIR } })
  expect([code, error.code, error.hint]).toEqual([3, 'socket-path-too-long', expect.stringContaining('TMPDIR')])
})
