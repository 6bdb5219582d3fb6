import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { packageRoot } from '../../src/core/paths.ts'
import { until, World } from '../helpers/world.ts'

const installs: string[] = []
afterEach(() => {
  for (const path of installs.splice(0)) rmSync(path, { recursive: true, force: true })
})

/** A copy of this build that a test may change, as an installed one. */
function install(): { readonly dir: string; readonly program: string } {
  const dir = mkdtempSync('/tmp/mi-')
  installs.push(dir)
  for (const name of ['bin', 'dist', 'package.json']) cpSync(join(packageRoot(), name), join(dir, name), { recursive: true })
  symlinkSync(join(packageRoot(), 'node_modules'), join(dir, 'node_modules'))
  return { dir, program: join(dir, 'bin', 'mosaic.js') }
}

/** The same build, but of the next version of the protocol. */
function speakNextProtocol(dir: string): void {
  let changed = 0
  for (const name of readdirSync(join(dir, 'dist')).filter((file) => file.endsWith('.mjs'))) {
    const path = join(dir, 'dist', name)
    const text = readFileSync(path, 'utf8')
    const next = text.replace(/^var (CLIENT_PROTOCOL|PROTOCOL_VERSION) = 1;$/gm, 'var $1 = 2;')
    if (next !== text) changed += 1
    writeFileSync(path, next)
  }
  expect(changed).toBeGreaterThan(1)
}

interface Ran {
  readonly code: number | null
  readonly error: string | undefined
  readonly hint: string | undefined
  readonly stderr: string
}

function run(world: World, program: string, args: readonly string[]): Ran {
  const { status, stdout, stderr } = spawnSync(process.execPath, [program, ...args], { cwd: world.root, env: world.env, encoding: 'utf8' })
  const error = args.includes('--json') ? (JSON.parse(stdout) as { error?: { code: string; hint: string } }).error : undefined
  return { code: status, error: error?.code, hint: error?.hint, stderr }
}

const pidOf = async (world: World): Promise<number> => (await world.must<{ pid: number }>(['bus', 'status'])).pid

describe('an upgrade', () => {
  test('under a live session: it goes on, and so does the host, with what it was started from', async () => {
    const { dir, program } = install()
    await using world = new World({ project: true, program })
    await world.start({ pm: true })
    expect(await world.ask('pm', 'RUN echo before')).toBe('before')
    const control = await world.control()
    rmSync(join(dir, 'dist'), { recursive: true })
    mkdirSync(join(dir, 'dist'))
    const ask = async (instance: string, body: string): Promise<string> => {
      const { result } = (await control.call('ask', { instance, body, waitMs: 50_000 })) as { result: { body: string } | null }
      return result?.body ?? ''
    }
    expect(await ask('pm', 'RUN echo after')).toBe('after')
    await control.call('launch', { instance: 'coder' })
    expect(await ask('coder', 'RUN cat stack/file.txt')).toBe('one')
  })

  test('to another protocol: exit 12 and the way out, and the new restart replaces the old host', async () => {
    await using world = new World()
    const newer = install()
    speakNextProtocol(newer.dir)
    const host = await world.start()
    expect(run(world, newer.program, ['ps', '--json'])).toMatchObject({ code: 12, error: 'protocol-mismatch', hint: 'mosaic bus restart' })
    expect((await world.json(['ps'])).code).toBe(0)
    const restarted = run(world, newer.program, ['bus', 'restart', '--drain', '1s'])
    expect([restarted.code, restarted.stderr]).toEqual([0, expect.stringContaining('does not wait for running turns')])
    expect((await host.ended).code).toBe(0)
    // now this CLI is the older one
    expect((await world.json(['ps'])).error).toMatchObject({ code: 'protocol-mismatch', hint: 'mosaic bus restart' })
    expect(run(world, newer.program, ['ps', '--json']).code).toBe(0)
    const back = await world.json(['bus', 'stop'])
    expect([back.code, (await world.json(['ps'])).code]).toEqual([0, 10])
  })

  test('a restart that could not start leaves the host alone', async () => {
    await using world = new World()
    const host = await world.start()
    world.business = { ...world.business, nonsense: true }
    world.configure()
    const refused = await world.run(['bus', 'restart'])
    expect([refused.code, await pidOf(world)]).toEqual([3, host.pid])
  })

  test('restart --drain lets the running turn end, and the answer arrive', async () => {
    await using world = new World()
    const host = await world.start({ pm: true })
    const gate = join(world.data, 'envs/acme/pm/workspace/go')
    const { id } = (await (
      await world.control()
    ).call('message.send', { to: 'pm', class: 'REQUEST', body: 'RUN touch begun; while [ ! -e go ]; do :; done; echo finished' })) as { id: string }
    await until('the turn runs', () => existsSync(join(gate, '../begun')))
    const restarted = world.run(['bus', 'restart', '--drain', '1m', '--pm'])
    await until('the host drains', () => host.output().includes('stopping'))
    writeFileSync(gate, '')
    expect((await restarted).code).toBe(0)
    expect((await host.ended).code).toBe(0)
    const thread = await world.must<{ class: string; body: string }[]>(['message', 'thread', id])
    expect(thread).toMatchObject([{ class: 'REQUEST' }, { class: 'RESULT', body: 'finished' }])
    expect(await pidOf(world)).not.toBe(host.pid)
    expect((await world.json(['bus', 'stop'])).code).toBe(0)
  })
})
