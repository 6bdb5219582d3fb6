import { spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { findAccount } from '../../src/core/account.ts'
import { hardeningOf } from '../../src/service/hardening.ts'
import { installUnit, uninstallUnit } from '../../src/service/install.ts'
import { judgeOutside } from '../../src/doctor/service.ts'
import { serviceOf } from '../../src/service/running.ts'
import { unitPlaces } from '../../src/service/places.ts'
import { statusOfUnit } from '../../src/service/status.ts'
import type { Systemctl } from '../../src/service/systemctl.ts'
import { MARKER, type Scope, toUnit, type UnitInput } from '../../src/service/unit.ts'
import { PROGRAM, World } from '../helpers/world.ts'

let dir: string
beforeEach(() => {
  dir = mkdtempSync('/tmp/mu-')
})
afterEach(() => {
  rmSync(dir, { recursive: true, force: true })
})

const me = userInfo().username

const input = (scope: Scope, changes: Partial<UnitInput> = {}): UnitInput => ({
  scope,
  business: 'acme',
  founder: me,
  node: process.execPath,
  program: PROGRAM,
  pm: true,
  dataRoot: join(dir, 'data'),
  dataRootOption: null,
  credentialsFile: join(dir, 'acme.env'),
  env: { PATH: '/usr/bin:/bin' },
  ...changes,
})

/** What systemd itself says of a unit file: nothing, when it takes every line. */
function verify(scope: Scope, text: string): string {
  const path = join(dir, 'mosaic-acme.service')
  writeFileSync(path, text)
  const { status, stdout, stderr, error } = spawnSync('systemd-analyze', [`--${scope}`, 'verify', '--man=no', path], {
    encoding: 'utf8',
    env: { PATH: process.env.PATH, HOME: dir, XDG_RUNTIME_DIR: dir, LANG: 'C.UTF-8' },
  })
  if (error !== undefined) throw new Error('systemd-analyze is missing: apt-get install systemd', { cause: error })
  const said = `${stdout}${stderr}`.split('\n').filter((line) => line.includes('mosaic-acme'))
  return `${status === 0 ? '' : `exit ${String(status)}\n`}${said.join('\n')}`
}

test.each(['system', 'user'] as const)('systemd takes every line of the %s unit, and complains of one that it does not know', (scope) => {
  const text = toUnit(input(scope))
  expect(verify(scope, text)).toBe('')
  expect(verify(scope, text.replace('KillMode=mixed', 'KillMood=mixed'))).toContain('KillMood')
  expect(verify(scope, text.replace(process.execPath, '/nonexistent/node'))).toContain('/nonexistent/node')
})

test('paths with blanks, quotes, percent and dollar signs arrive as they are', () => {
  const odd = join(dir, `o'd "d %h $HOME \\ x`)
  // of a program's own path systemd takes no quotes and no backslash
  const bin = join(dir, 'b in %h $HOME')
  for (const made of [odd, bin]) mkdirSync(made)
  symlinkSync(process.execPath, join(bin, 'node'))
  const text = toUnit(
    input('system', {
      node: join(bin, 'node'),
      program: join(odd, 'mosaic.js'),
      dataRoot: odd,
      dataRootOption: odd,
      credentialsFile: join(odd, 'c.env'),
      env: { MOSAIC_CONFIG: odd },
    }),
  )
  expect(verify('system', text)).toBe('')
  expect(verify('system', text.replace(/^ExecStart=/m, 'ExecStart="'))).not.toBe('')
  expect(text).toContain(`EnvironmentFile=-${odd.replaceAll('%', '%%')}/c.env`)
})

test('what a bus host needs of its unit', () => {
  const system = toUnit(input('system'))
  for (const line of [
    'Type=notify',
    `User=${me}`,
    `ExecStart=${process.execPath} ${PROGRAM} bus start --business acme --pm`,
    'ExecReload=/bin/kill -HUP $MAINPID',
    'Restart=on-failure',
    'RestartPreventExitStatus=2 3 11 12',
    'KillMode=mixed',
    'OOMPolicy=continue',
    'Delegate=yes',
    'ProtectSystem=strict',
    `ReadWritePaths=${join(dir, 'data')}`,
    'WantedBy=multi-user.target',
  ])
    expect(system.split('\n')).toContain(line)
  expect(system).toMatch(/^WatchdogSec=\d+$/m)
  expect(system).toMatch(/^TimeoutStopSec=\d+$/m)
  const user = toUnit(input('user', { pm: false }))
  expect(user).not.toMatch(/^(User|ReadWritePaths|ProtectSystem)=|--pm/m)
  expect(user).toContain('WantedBy=default.target')
})

test('nothing that breaks bubblewrap or Node is in either unit', () => {
  const breaking =
    /^(ProtectKernelTunables|ProtectHostname|ProcSubset|MemoryDenyWriteExecute|RestrictSUIDSGID|PrivateUsers|ProtectControlGroups)=|^RestrictNamespaces=yes|^SystemCallFilter=[^~]/m
  for (const scope of ['system', 'user'] as const) {
    const lines = hardeningOf(scope).map(([name, value]) => `${name}=${value}`)
    expect(lines.join('\n')).not.toMatch(breaking)
    expect(lines).toContain('RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK')
  }
})

/** Writes down what systemd would be told; the real one is tried by .config/service-test.sh. */
function record(): Systemctl & { readonly told: string[] } {
  const told: string[] = []
  return { told, run: (...args) => (told.push(args.join(' ')), ''), show: () => ({}) }
}

test('an installation writes unit and credentials file, never over credentials that are there, never over a foreign unit', () => {
  const places = unitPlaces('user', 'acme', { home: dir, env: { XDG_CONFIG_HOME: join(dir, 'c') } })
  const request = { places, text: toUnit(input('user')), account: { ...findAccount(me), home: dir }, dataRoot: join(dir, 'data') }
  const systemctl = record()
  expect(installUnit(systemctl, request)).toMatchObject({ unit: 'mosaic-acme.service', credentialsMade: true })
  expect(readFileSync(places.unit, 'utf8')).toBe(request.text)
  expect([statSync(places.credentials).mode & 0o777, statSync(request.dataRoot).mode & 0o777]).toEqual([0o600, 0o700])
  expect(systemctl.told).toEqual(['daemon-reload', 'enable mosaic-acme.service'])
  writeFileSync(places.credentials, 'TOKEN=stand-in\n')
  expect(installUnit(systemctl, { ...request, text: `${request.text}# newer\n` })).toMatchObject({ credentialsMade: false, credentialsClosed: false })
  chmodSync(places.credentials, 0o644)
  expect(installUnit(systemctl, { ...request, text: `${request.text}# newer\n` })).toMatchObject({ credentialsMade: false, credentialsClosed: true })
  expect(statSync(places.credentials).mode & 0o777).toBe(0o600)
  expect([readFileSync(places.credentials, 'utf8'), readFileSync(places.unit, 'utf8')]).toEqual(['TOKEN=stand-in\n', `${request.text}# newer\n`])
  expect(statusOfUnit(systemctl, { scope: 'user', places, texts: [request.text] })).toMatchObject({ installed: true, current: false, pid: null })
  for (const foreign of ['[Service]\nExecStart=/bin/true\n', `${MARKER}\n[Service]\nUser=somebody\n`]) {
    writeFileSync(places.unit, foreign)
    expect(() => installUnit(systemctl, request)).toThrow(expect.objectContaining({ code: 'config-exists' }) as Error)
    expect(() => uninstallUnit(systemctl, request)).toThrow(expect.objectContaining({ code: 'config-exists' }) as Error)
    expect(readFileSync(places.unit, 'utf8')).toBe(foreign)
  }
  writeFileSync(places.unit, request.text)
  uninstallUnit(systemctl, request)
  expect([existsSync(places.unit), existsSync(places.credentials)]).toEqual([false, true])
  expect(() => uninstallUnit(systemctl, request)).toThrow(expect.objectContaining({ code: 'not-running' }) as Error)
})

test('on the command line: print as it is, refusals that say how', async () => {
  await using world = new World()
  const { text } = await world.must<{ text: string }>(['service', 'print', '--system', '--pm'])
  expect(verify('system', text)).toBe('')
  expect(text).toContain(`Environment="MOSAIC_CONFIG=${world.config}"`)
  expect((await world.run(['service', 'print', '--system', '--pm'])).stdout).toBe(text)
  const refused = await world.json(['service', 'install', '--system'])
  expect([refused.code, refused.error]).toMatchObject([5, { code: 'not-permitted', hint: `sudo mosaic service install --system --as ${me}` }])
  expect((await world.json(['service', 'print', '--as', 'root'])).error.code).toBe('runs-as-root')
  expect((await world.json(['service', 'print', '--user', '--system'])).code).toBe(2)
  expect(await world.json(['service', 'status', '--user'])).toMatchObject({ code: 1, data: { installed: false, current: null } })
})

test('without a manager that answers, nothing is written', async () => {
  await using world = new World()
  // where systemd runs, the user's manager is out of reach without XDG_RUNTIME_DIR
  const { code, error } = await world.json(['service', 'install', '--user'])
  expect([code, error.code]).toEqual(existsSync('/run/systemd/system') ? [1, 'internal'] : [12, 'program-missing'])
  expect(existsSync(join(world.home, '.config/systemd'))).toBe(false)
})

test('a unit is found by its name and file when the configuration is broken, and a second one for its data root is refused', async () => {
  await using world = new World()
  const { text, path } = await world.must<{ text: string; path: string }>(['service', 'print', '--user'])
  world.write(path, text)
  expect((await world.json(['service', 'status', '--user'])).data).toMatchObject({ installed: true, current: true })
  world.write(join(world.config, 'businesses', 'two.yaml'), readFileSync(join(world.config, 'businesses', 'acme.yaml'), 'utf8'))
  const second = await world.json(['service', 'print', '--user', '--business', 'two'])
  expect([second.code, second.error]).toMatchObject([3, { code: 'config-exists', hint: 'mosaic service install --user --business two --data-root DIR' }])
  expect((await world.json(['service', 'print', '--user', '--business', 'two', '--data-root', join(world.root, 'd2')])).code).toBe(0)
  world.write(join(world.config, 'system.yaml'), 'version: 2\n')
  const status = await world.json(['service', 'status', '--user'])
  expect(status).toMatchObject({ code: 1, data: { unit: 'mosaic-acme.service', installed: true, current: null } })
  // past the configuration: what refuses is systemd, or its absence
  expect((await world.json(['service', 'uninstall', '--user'])).error.code).toBe(existsSync('/run/systemd/system') ? 'internal' : 'program-missing')
  expect((await world.json(['service', 'uninstall', '--user', '--business', '../x'])).error.code).toBe('business-not-found')
  rmSync(path)
  expect((await world.json(['service', 'status', '--user'])).error.code).toBe('config-invalid')
})

test('the unit of a process is the innermost service of its cgroup, and a login is none', () => {
  const user = '/user.slice/user-1000.slice/user@1000.service/app.slice'
  expect(serviceOf('0::/system.slice/mosaic-acme.service/host\n')).toEqual({ scope: 'system', name: 'mosaic-acme.service' })
  expect(serviceOf(`0::${user}/mosaic-acme.service\n`)).toEqual({ scope: 'user', name: 'mosaic-acme.service' })
  expect(serviceOf('5:pids:/x.service\n1:name=systemd:/system.slice/mosaic-acme.service\n0::/\n')).toMatchObject({ name: 'mosaic-acme.service' })
  for (const none of ['0::/user.slice/user-1000.slice/session-3.scope\n', `0::${user}/run-1.scope\n`, '0::/\n', '']) expect(serviceOf(none)).toBe(null)
})

test('doctor: a host beside a unit that does not run, and none that the unit runs', () => {
  const unit = { scope: 'user' as const, name: 'mosaic-acme.service', path: '', business: 'acme', programs: [], environmentFile: null, dataRoot: null }
  const host = { pid: 7, root: '/d' }
  const remedy = 'mosaic bus stop && systemctl --user start mosaic-acme.service'
  expect(judgeOutside(host, [{ unit, pid: 0 }])).toMatchObject([{ state: 'warn', code: 'host-running', remedy }])
  expect(judgeOutside(host, [{ unit, pid: 7 }])).toEqual([])
  expect(judgeOutside(host, [])).toEqual([])
  expect(judgeOutside(null, [{ unit, pid: 0 }])).toEqual([])
})

test('under a unit the log is in the journal, and bus logs says where', async () => {
  await using world = new World()
  expect((await world.json(['bus', 'logs'])).error).toMatchObject({ code: 'host-not-running', hint: 'mosaic bus start' })
  const { text, path } = await world.must<{ text: string; path: string }>(['service', 'print', '--user'])
  world.write(path, text)
  const without = await world.json(['bus', 'logs'])
  expect([without.code, without.error]).toMatchObject([10, { hint: 'journalctl --user -u mosaic-acme.service' }])
  world.write(join(world.data, 'bus-host', 'host.log'), '{"level":30,"msg":"of another day"}\n')
  const older = await world.run(['bus', 'logs'])
  expect(older).toMatchObject({ code: 0, stdout: expect.stringContaining('of another day') as string, stderr: expect.stringContaining('journalctl') as string })
})
