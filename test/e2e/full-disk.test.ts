import { type ChildProcessByStdio, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, existsSync, mkdirSync, openSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { expect, test } from 'vitest'
import { CLIENT_PROTOCOL, connectCalls } from '../../src/client/connect.ts'
import { AppError, errnoOf } from '../../src/core/errors.ts'
import { packageRoot } from '../../src/core/paths.ts'
import { Founder } from '../helpers/founder.ts'
import { processesOf, PROGRAM, until, World } from '../helpers/world.ts'

const LARGE = 4 * 1024 ** 3
const RESIZE = join(packageRoot(), 'fixtures', 'disk', 'resize.py')

/** A data root on a tmpfs of its own, which may shrink and grow under the host; two hosts live on it, one after the other. */
class SmallDisk implements AsyncDisposable {
  readonly #world: World
  readonly #child: ChildProcessByStdio<null, Readable, Readable>
  #output = ''

  constructor(world: World) {
    this.#world = world
    mkdirSync(world.data, { mode: 0o700 })
    const host = `'${process.execPath}' '${PROGRAM}' bus start --business acme`
    const args = [
      '--dev-bind',
      '/',
      '/',
      '--perms',
      '0700',
      '--size',
      String(LARGE),
      '--tmpfs',
      world.data,
      '--die-with-parent',
      '--',
      'sh',
      '-c',
      `${host}; ${host}`,
    ]
    this.#child = spawn('bwrap', args, { env: world.env, stdio: ['ignore', 'pipe', 'pipe'] })
    for (const stream of [this.#child.stdout, this.#child.stderr]) stream.setEncoding('utf8').on('data', (text: string) => void (this.#output += text))
  }

  /** The pid of the nth host, once it is ready. */
  async ready(nth: number): Promise<number> {
    const pids = (): string[] => [...this.#output.matchAll(/^ready: .*\(pid (\d+)\)$/gm)].map(([, pid]) => pid ?? '')
    await until(`host ${String(nth)} is ready: ${this.#output}`, () => pids().length >= nth)
    return Number(pids()[nth - 1])
  }

  /** The founder, through the mount namespace of that host. */
  async founder(pid: number): Promise<Founder> {
    const path = join('/proc', String(pid), 'root', this.#world.data, 'bus-host', 'control.sock')
    return new Founder(await connectCalls(path, { protocol: CLIENT_PROTOCOL, version: 'test' }))
  }

  /** `bytes` smaller than what is used leaves no room at all. */
  resize(pid: number, bytes: number): void {
    const { status, stderr } = spawnSync('python3', [RESIZE, String(pid), this.#world.data, String(bytes)], { encoding: 'utf8' })
    if (status !== 0) throw new Error(`resizing failed: ${stderr}`)
  }

  /** Takes what room is left. */
  fillUp(pid: number): void {
    const file = openSync(join('/proc', String(pid), 'root', this.#world.data, 'filler'), 'w')
    const chunk = Buffer.alloc(4096)
    try {
      for (;;) writeSync(file, chunk)
    } catch (error) {
      if (errnoOf(error) !== 'ENOSPC') throw error
    } finally {
      closeSync(file)
    }
  }

  /** Is space kept for the ends of runs? */
  reserve(pid: number): boolean {
    return existsSync(join('/proc', String(pid), 'root', this.#world.data, 'mosaic.db.reserve'))
  }

  /** The bytes that are used now. */
  used(pid: number): number {
    const { stdout } = spawnSync('stat', ['-f', '-c', '%b %f %S', join('/proc', String(pid), 'root', this.#world.data)], { encoding: 'utf8' })
    const [blocks = 0, free = 0, size = 0] = stdout.trim().split(' ').map(Number)
    return (blocks - free) * size
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const pid of processesOf(this.#world.root)) process.kill(pid, 'SIGKILL')
    if (this.#child.exitCode === null && this.#child.signalCode === null) await once(this.#child, 'exit')
  }
}

const codeOf = (error: unknown): string => (error instanceof AppError ? error.code : String(error))

/** Sends until the store has no room left; what was acknowledged. */
async function fill(founder: Founder, bytes = 60_000): Promise<{ kept: Map<string, string>; code: string }> {
  const kept = new Map<string, string>()
  for (let n = 0; n < 1000; n++) {
    const body = `${String(n)} ${'x'.repeat(bytes)}`
    try {
      kept.set(await founder.send('pm', body), body)
    } catch (error) {
      return { kept, code: codeOf(error) }
    }
  }
  return { kept, code: 'never' }
}

test('a full disk: no new launches, a clear code, ends still recorded, and nothing lost, also by a crash in the middle of it', async () => {
  await using world = new World()
  await using disk = new SmallDisk(world)
  const first = await disk.ready(1)
  const founder = await disk.founder(first)
  const coder = await founder.session('coder')
  const reviewer = await founder.session('reviewer')
  // room for some messages, then none
  disk.resize(first, disk.used(first) + 3_000_000)
  const { kept, code } = await fill(founder)
  expect([code, kept.size > 0]).toEqual(['disk-full', true])
  expect(await founder.launch('pm').catch(codeOf)).toBe('disk-full')
  // the reserve is for ends, not for refusals
  expect(disk.reserve(first)).toBe(true)
  await founder.stop('coder')
  expect(await founder.ends(coder.run)).toMatchObject([{ reason: 'stopped' }])
  process.kill(first, 'SIGKILL')
  founder.client.close()
  const second = await disk.ready(2)
  const next = await disk.founder(second)
  expect(await next.ends(reviewer.run)).toMatchObject([{ reason: 'host-lost' }])
  disk.resize(second, LARGE)
  for (const [id, body] of kept) expect((await next.message(id)).body).toBe(body)
  expect(await next.client.call('trail.verify')).toMatchObject({ ok: true })
  await next.session('coder')
})

test('an end for which not even the reserve had room is recorded once there is some, and its instance can be launched again', async () => {
  await using world = new World()
  await using disk = new SmallDisk(world)
  const host = await disk.ready(1)
  const founder = await disk.founder(host)
  const coder = await founder.session('coder')
  const reviewer = await founder.session('reviewer')
  disk.resize(host, disk.used(host) + 3_000_000)
  expect((await fill(founder)).code).toBe('disk-full')
  await founder.stop('coder')
  expect([await founder.ends(coder.run), disk.reserve(host)]).toMatchObject([[{ reason: 'stopped' }], false])
  // what the reserve gave is used up as well
  expect((await fill(founder)).code).toBe('disk-full')
  for (const bytes of [8000, 500]) await fill(founder, bytes)
  disk.fillUp(host)
  await founder.stop('reviewer')
  expect(await founder.ends(reviewer.run)).toEqual([])
  disk.resize(host, LARGE)
  expect((await founder.ended(reviewer.run)).state).toBe('ended')
  expect(await founder.ends(reviewer.run)).toMatchObject([{ reason: 'stopped' }])
  await founder.session('reviewer')
  expect(disk.reserve(host)).toBe(true)
  founder.client.close()
})

/** A host that starts on a full disk of its own: its envelope. `before`: shell commands, `mosaic` among them. */
function startOnFullDisk(world: World, before: string): { code: number | null; error: { code: string; message: string; hint: string } } {
  mkdirSync(world.data, { mode: 0o700 })
  const script = `mosaic() { '${process.execPath}' '${PROGRAM}' "$@"; }; cd '${world.data}'; ${before} cat /dev/zero >filler 2>/dev/null; mosaic bus start --business acme --json`
  const args = ['--dev-bind', '/', '/', '--perms', '0700', '--size', String(LARGE / 16), '--tmpfs', world.data, '--die-with-parent', '--', 'sh', '-c', script]
  const { status, stdout } = spawnSync('bwrap', args, { env: world.env, encoding: 'utf8' })
  return { code: status, ...(JSON.parse(stdout.trim().split('\n').at(-1) ?? '') as { error: { code: string; message: string; hint: string } }) }
}

test.each([
  ['a store that is there', 'mosaic bus start --business acme --detach >/dev/null; mosaic bus stop >/dev/null; rm mosaic.db.reserve;'],
  ['no store yet', 'mkdir -m 700 bus-host; touch bus-host/host.lock;'],
])('a full disk at the start, with %s: disk-full, and nothing is to be moved aside', async (_, before) => {
  await using world = new World()
  const { code, error } = startOnFullDisk(world, before)
  expect([code, error.code]).toEqual([3, 'disk-full'])
  expect(`${error.message} ${error.hint}`).not.toMatch(/aside|mv /)
  expect(error.hint).toContain('df -h')
})
