import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { chmodSync, copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { FAILING_SYSTEMS } from '../../fixtures/doctor/messages.ts'
import { packageRoot } from '../../src/core/paths.ts'
import { CATEGORIES, type CheckRow, isCategory } from '../../src/doctor/check.ts'
import { remedyForOwner } from '../../src/doctor/data-root.ts'
import { MARKER } from '../../src/service/unit.ts'
import { PROGRAM, World } from '../helpers/world.ts'

let world: World
beforeEach(() => {
  world = new World()
})
afterEach(() => world[Symbol.asyncDispose]())

interface Owner {
  readonly uid: number
  readonly name: string
}

interface Seen {
  readonly code: number | null
  readonly checks: readonly CheckRow[]
  readonly stderr: string
  readonly find: (name: string) => CheckRow | undefined
}

async function doctor(args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Seen> {
  const { code, data, stderr } = await world.json(['doctor', ...args], { env })
  const { checks } = data as { readonly checks: readonly CheckRow[] }
  return { code, checks, stderr, find: (name) => checks.find((check) => check.name === name) }
}

const sums = (): Record<string, string> =>
  Object.fromEntries(
    readdirSync(world.data)
      .filter((name) => name.startsWith('mosaic.db'))
      .map((name) => [
        name,
        createHash('sha256')
          .update(readFileSync(join(world.data, name)))
          .digest('hex'),
      ]),
  )

test('a machine on which all is well: every category says so, exit 0', async () => {
  const { code, checks } = await doctor(CATEGORIES.filter((category) => category !== 'disk'))
  expect(checks.filter(({ state }) => state === 'fail')).toEqual([])
  expect(code).toBe(0)
  expect([...new Set(checks.map(({ category }) => category))]).toEqual(CATEGORIES.filter((category) => category !== 'disk'))
  for (const { state, code: of, remedy } of checks) expect(state === 'ok' ? [of, remedy] : [null, null]).toEqual([null, null])
  expect(existsSync(world.data)).toBe(false)
})

test('for people: a line a check, a remedy under what is wrong; -q names what failed', async () => {
  world.system.sandbox = { bwrap: '/nonexistent/bwrap' }
  world.configure()
  const human = await world.run(['doctor', 'sandbox', 'config'])
  expect(human.code).toBe(1)
  expect(human.stdout).toMatch(
    /^sandbox\n {2}fail policy: \/nonexistent\/bwrap is missing \(sandbox\.bwrap in system\.yaml names it\) \[sandbox-unavailable\]\n {7}→ correct that path/,
  )
  expect((await world.run(['doctor', 'sandbox', 'config', '-q'])).stdout).toBe('sandbox/policy\n')
})

test.each(FAILING_SYSTEMS)('bubblewrap as it fails on $system: its own words are kept', async ({ words }) => {
  const bwrap = join(world.root, 'bwrap')
  copyFileSync(join(packageRoot(), 'fixtures', 'doctor', 'bwrap.sh'), bwrap)
  chmodSync(bwrap, 0o755)
  writeFileSync(`${bwrap}.words`, `${words}\n`)
  world.system.sandbox = { bwrap }
  world.configure()
  const { code, find } = await doctor(['sandbox'])
  expect(code).toBe(1)
  expect(find('policy')).toMatchObject({
    state: 'fail',
    code: 'sandbox-unavailable',
    message: expect.stringContaining(words.replaceAll(/\s+/g, ' ').slice(0, 60)) as string,
  })
  expect(find('policy')?.remedy).not.toBe(null)
})

test('a category that is none is a mistake on the command line', async () => {
  const { code, error } = await world.json(['doctor', 'sandbx'])
  expect([code, error.code]).toEqual([2, 'usage'])
  expect(error.hint).toContain('sandbox limits kernel')
})

test('each hint of the program names a category that exists', () => {
  const sources = readdirSync(join(packageRoot(), 'src'), { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'))
  const text = sources.map((name) => readFileSync(join(packageRoot(), 'src', name), 'utf8')).join('\n')
  const named = [...text.matchAll(/mosaic doctor ([a-z]+)/g)].map((match) => match[1] ?? '')
  expect(named).toContain('limits')
  expect(named.filter((word) => !isCategory(word))).toEqual([])
})

test('each mistake in the configuration is a check of its own, with its place', async () => {
  world.system.founderr = 'ada'
  world.system.model = 7
  world.configure()
  const { code, checks } = await doctor(['config', 'harness'])
  expect(code).toBe(1)
  const files = checks.filter(({ name }) => name === 'files')
  expect(files.length).toBe(2)
  for (const { message, code: of } of files) expect([of, message]).toEqual(['config-invalid', expect.stringMatching(/system\.yaml:\d+:\d+: /)])
  expect((await doctor(['config'], { MOSAIC_CONFIG: join(world.root, 'none') })).find('files')).toMatchObject({
    code: 'config-not-found',
    remedy: 'mosaic init',
  })
})

test('programs and credentials that roles need, where the bus host would look', async () => {
  const secret = join(world.root, 'token')
  world.business = {
    version: 1,
    roles: {
      pm: {
        vars: { harness: 'claude-code', model: 'claude-opus-5-5' },
        credentials: { tracker: { env: 'TRACKER_TOKEN' }, deploy: { file: secret }, old: { env: 'OLD_TOKEN', expires: '2020-01-01' } },
      },
    },
  }
  world.configure()
  const without = await doctor(['harness'])
  expect(without.checks.map(({ message }) => message)).not.toContain('without a configuration there are no roles to look at')
  expect(without.code).toBe(1)
  expect(without.find('claude-code')).toMatchObject({ state: 'fail', code: 'harness-missing' })
  expect(without.find('acme/pm.tracker')).toMatchObject({ state: 'fail', message: expect.stringContaining('TRACKER_TOKEN is not set') as string })
  expect(without.find('acme/pm.deploy')).toMatchObject({ state: 'fail', message: expect.stringContaining(secret) as string })
  world.write(secret, 'deploy-secret')
  chmodSync(secret, 0o644)
  const claude = world.write(join(world.root, 'claude'), '#!/bin/sh\necho "2.0.1 (Claude Code)"\n')
  chmodSync(claude, 0o755)
  const having = await doctor(['harness'], { TRACKER_TOKEN: 'tracker-secret', OLD_TOKEN: 'old-secret', MOSAIC_CLAUDE_BIN: claude })
  expect(having.find('acme/pm.tracker')).toMatchObject({ state: 'ok' })
  expect(having.find('acme/pm.deploy')).toMatchObject({ state: 'warn', remedy: `chmod 600 ${secret}` })
  expect(having.find('acme/pm.old')).toMatchObject({ state: 'fail', message: expect.stringContaining('expired') as string })
  expect(having.find('claude-code')).toMatchObject({ state: 'fail', code: 'no-session-credential' })
  const unit = { path: join(world.home, '.config/systemd/user/mosaic-acme.service'), env: join(world.root, 'acme.env') }
  world.write(unit.path, `${MARKER}\n[Service]\nExecStart=${process.execPath} ${PROGRAM} bus start\nEnvironmentFile=-${unit.env}\n`)
  world.write(unit.env, '# none\nCLAUDE_CODE_OAUTH_TOKEN="unit-secret"\n')
  const unitEnv = await doctor(['harness'], { MOSAIC_CLAUDE_BIN: claude })
  expect(unitEnv.find('claude-code')?.code).not.toBe('no-session-credential')
})

test('a data root that others may enter is made private by --fix, and nothing else is touched', async () => {
  mkdirSync(join(world.data, 'bus-host'), { recursive: true, mode: 0o755 })
  chmodSync(world.data, 0o755)
  const before = await doctor(['store'])
  expect([before.code, before.find('data root')]).toMatchObject([1, { code: 'data-root-unsafe', message: `${world.data} has mode 755, not 700` }])
  expect(statSync(world.data).mode & 0o777).toBe(0o755)
  const fixed = await doctor(['store', '--fix'])
  expect(fixed.stderr).toContain(`fix: chmod 700 ${world.data}`)
  expect((await doctor(['store', '--fix'])).code).toBe(0)
  expect(statSync(world.data).mode & 0o777).toBe(0o700)
  expect(statSync(join(world.data, 'bus-host')).mode & 0o777).toBe(0o700)
})

test("somebody else's directory, a file, and a path too long for a socket", async () => {
  const foreign = await doctor(['store', '--fix', '--data-root', '/usr/share'])
  expect([foreign.code, foreign.find('data root')]).toMatchObject([
    1,
    { code: 'data-root-unsafe', message: expect.stringContaining("/usr/share is root's") as string },
  ])
  const file = world.write(join(world.root, 'file'), '')
  expect((await doctor(['store', '--data-root', file])).find('data root')).toMatchObject({ state: 'fail', message: `${file} is not a directory` })
  const long = await doctor(['sockets', '--data-root', join(world.root, 'x'.repeat(90))])
  expect([long.code, long.find('path length')]).toMatchObject([1, { code: 'socket-path-too-long' }])
})

const broken = (checks: readonly CheckRow[]): readonly CheckRow[] => checks.filter(({ code }) => code === 'internal')
const unsafe = (checks: readonly CheckRow[]): readonly string[] => checks.filter(({ code }) => code === 'data-root-unsafe').map(({ category }) => category)

test.each(['/root', '/root/d'])("somebody else's data root %s breaks no check: each that needs it says what is so", async (root) => {
  const { code, checks } = await doctor(['--data-root', root])
  expect([code, broken(checks), unsafe(checks)]).toEqual([1, [], ['store', 'sockets']])
})

test('a configuration that cannot be read breaks no check', async () => {
  for (const path of [join(world.config, 'system.yaml'), join(world.config, 'businesses'), world.config]) {
    const { mode } = statSync(path)
    chmodSync(path, 0)
    const { code, checks, find } = await doctor([])
    chmodSync(path, mode)
    expect([code, broken(checks), find('files')]).toMatchObject([1, [], { state: 'fail', message: expect.stringContaining('EACCES') as string }])
  }
})

test('a data root on a read-only file system, and no place to try a sandbox in, break no check', () => {
  mkdirSync(world.data, { mode: 0o700 })
  const readOnly = ['--dev-bind', '/', '/', '--ro-bind', '/tmp', '/tmp', '--die-with-parent', '--']
  const { stdout } = spawnSync('bwrap', [...readOnly, process.execPath, PROGRAM, 'doctor', '--json'], { env: world.env, encoding: 'utf8' })
  const { checks } = (JSON.parse(stdout) as { data: { checks: readonly CheckRow[] } }).data
  expect([broken(checks), unsafe(checks)]).toEqual([[], ['store', 'sockets']])
  expect(checks.find(({ code }) => code === 'data-root-unsafe')).toMatchObject({
    message: expect.stringContaining('read-only file system') as string,
    remedy: expect.stringContaining('mount its file system read-write') as string,
  })
  expect(checks.find(({ name }) => name === 'policy')).toMatchObject({ state: 'warn', message: expect.stringContaining('no directory to try it in') as string })
})

test('what to do about a directory of somebody else: never to run as root', () => {
  const [root, ada, bob] = [0, 1000, 1001].map((uid, at) => ({ uid, name: ['root', 'ada', 'bob'][at] ?? '' })) as [Owner, Owner, Owner]
  expect(remedyForOwner('/d', { owner: root, us: ada })).toMatch(/^sudo chown -R ada: \/d, or choose another data root/)
  expect(remedyForOwner('/d', { owner: bob, us: ada })).toMatch(/^run mosaic as bob, or choose another data root/)
  expect(remedyForOwner('/d', { owner: bob, us: root })).toBe('mosaic doctor --user bob')
})

test('a bus host that runs, and what is left of one that was killed', async () => {
  const host = await world.start()
  const running = await doctor(['sockets', 'store', 'limits', 'sandbox'])
  expect(running.find('bus host')).toMatchObject({ state: 'ok', message: `pid ${String(host.pid)} serves acme, ready` })
  expect([running.code, running.find('mosaic.db'), running.find('policy')]).toMatchObject([0, { state: 'ok' }, { state: 'ok' }])
  await host.crash()
  const before = sums()
  expect(Object.keys(before)).toContain('mosaic.db-wal')
  const killed = await doctor(['sockets', 'store'])
  expect(killed.find('sockets')).toMatchObject({ state: 'warn', code: 'host-not-running' })
  expect(killed.find('write-ahead log')).toMatchObject({ state: 'warn' })
  expect(existsSync(join(world.data, 'bus-host', 'control.sock'))).toBe(true)
  const fixed = await doctor(['sockets', 'store', '--fix'])
  expect(fixed.stderr).toMatch(/fix: removed .*control\.sock/)
  expect([fixed.code, fixed.find('sockets')]).toMatchObject([0, { state: 'ok' }])
  expect(readdirSync(join(world.data, 'bus-host')).filter((name) => name.endsWith('.sock') || name.startsWith('.doctor'))).toEqual([])
  expect(sums()).toEqual(before)
  expect(await (await world.start()).stop()).toBe(0)
})

test('a socket that answers although nobody holds the host lock stays where it is', async () => {
  mkdirSync(join(world.data, 'bus-host'), { recursive: true, mode: 0o700 })
  chmodSync(world.data, 0o700)
  const path = join(world.data, 'bus-host', 'control.sock')
  const server = createServer().listen(path)
  const { code, find } = await doctor(['sockets', '--fix'])
  expect([code, find('sockets')]).toMatchObject([1, { state: 'fail', code: 'host-running' }])
  expect(existsSync(path)).toBe(true)
  server.close()
})

test('a store that is not ours, newer, or gone', async () => {
  await (await world.start()).stop()
  const db = join(world.data, 'mosaic.db')
  const bytes = readFileSync(db)
  expect((await doctor(['store'])).code).toBe(0)
  const change = (at: number, value: number): void => {
    const changed = Buffer.from(bytes)
    changed.writeUInt32BE(value, at)
    writeFileSync(db, changed)
  }
  change(60, 9999)
  expect((await doctor(['store'])).find('mosaic.db')).toMatchObject({ state: 'fail', code: 'store-newer' })
  change(68, 1)
  expect((await doctor(['store'])).find('mosaic.db')).toMatchObject({ state: 'fail', code: 'store-unreadable' })
  writeFileSync(db, '')
  expect((await doctor(['store'])).find('mosaic.db')).toMatchObject({ state: 'fail', code: 'store-lost' })
  writeFileSync(db, bytes)
  chmodSync(db, 0o644)
  expect((await doctor(['store'])).find('modes')).toMatchObject({ state: 'warn', remedy: `chmod 600 ${db}` })
})

test('another product called mosaic on PATH is told from ours', async () => {
  const bin = join(world.root, 'bin')
  const own = world.write(join(bin, 'mosaic'), '#!/bin/sh\necho NCSA Mosaic\n')
  chmodSync(own, 0o755)
  const path = `${bin}:${dirname(process.execPath)}:/usr/bin:/bin`
  expect((await doctor(['install'], { PATH: path })).find('command')).toMatchObject({
    state: 'warn',
    message: expect.stringContaining('another product') as string,
  })
  const ours = join(world.root, 'ours')
  mkdirSync(ours)
  symlinkSync(PROGRAM, join(ours, 'mosaic'))
  expect((await doctor(['install'], { PATH: `${ours}:${path}` })).find('command')).toMatchObject({ state: 'ok' })
})

test('a unit whose Node has gone, and a credentials file that others can read', async () => {
  const env = world.write(join(world.root, 'acme.env'), '')
  chmodSync(env, 0o644)
  const path = join(world.home, '.config/systemd/user/mosaic-acme.service')
  world.write(path, `${MARKER}\n[Service]\nExecStart=/nonexistent/node ${PROGRAM} bus start --business acme\nEnvironmentFile=-${env}\n`)
  const { code, checks } = await doctor(['service'])
  expect(code).toBe(1)
  expect(checks).toContainEqual(
    expect.objectContaining({ state: 'fail', code: 'program-missing', message: expect.stringContaining('/nonexistent/node') as string }),
  )
  expect(checks).toContainEqual(expect.objectContaining({ state: 'warn', remedy: `chmod 600 ${env}` }))
})

test("a unit of another product's is not judged, whatever its name", async () => {
  const path = join(world.home, '.config/systemd/user/mosaic-browser.service')
  world.write(path, '[Service]\nExecStart=/nonexistent/browser\nEnvironmentFile=/etc/hostname\n')
  const { code, checks } = await doctor(['service'])
  expect([code, checks.map(({ name }) => name)]).toEqual([0, ['unit']])
})
