import { afterAll, beforeAll, expect, test } from 'vitest'
import { toArguments } from '../../src/sandbox/argv.ts'
import { helperPlan, type SandboxPlan, type SessionPlanInput, sessionPlan } from '../../src/sandbox/plan.ts'
import { expectedMounts, mountDifferences, parseMounts, sandboxDifferences } from '../../src/sandbox/readback.ts'
import type { SystemView } from '../../src/sandbox/system.ts'
import { openWorld, type World } from './world.ts'

const SYSTEM: SystemView = {
  links: [{ path: '/bin', target: 'usr/bin' }],
  directories: ['/lib64'],
  etc: [{ source: '/usr/share/zoneinfo/UTC', dest: '/etc/localtime' }],
  resolvConf: 'nameserver 10.0.0.1\n',
  timeZone: 'UTC',
  shell: '/bin/bash',
  pathDirs: ['/usr/lib/go/bin'],
}
const INPUT: SessionPlanInput = {
  system: SYSTEM,
  run: 'r0123456789ab',
  uid: 1001,
  gid: 1002,
  network: 'none',
  env: { PAGER: 'cat' },
  home: { fd: 21, path: '/data/launches/acme/r/home' },
  workspace: { fd: 22, path: '/data/envs/acme/coder/workspace' },
  state: { fd: 23, path: '/data/envs/acme/coder/state' },
  cache: { fd: 24, path: '/data/envs/acme/coder/cache' },
  bundle: { fd: 25, path: '/data/launches/acme/r/bundle' },
  sessionFile: { fd: 26, path: '/data/launches/acme/r/session.json' },
  sockets: [{ name: 'bus.sock', path: '/data/bus-host/bus.sock' }],
  runnerNode: '/data/bus-host/node',
  programs: [{ source: '/home/ada/.nvm/v20', dest: '/opt/mosaic/node' }],
  pathDirs: ['/opt/mosaic/node/bin'],
  forbidden: { trees: ['/data'], home: '/home/ada' },
  limits: { memoryBytes: null, pids: null, cpus: null, enforce: 'available' },
}
const SESSION = { bindFd: true, outlivesHost: true, locked: true } as const

const lines = (args: readonly string[]): string[] =>
  args
    .join(' ')
    .replaceAll(/ (?=--)/g, '\n')
    .split('\n')

test('the whole policy of a session, in order', () => {
  expect(lines(toArguments(sessionPlan(INPUT), SESSION).args)).toMatchInlineSnapshot(`
    [
      "--unshare-user",
      "--unshare-pid",
      "--unshare-ipc",
      "--unshare-uts",
      "--unshare-cgroup-try",
      "--unshare-net",
      "--disable-userns",
      "--cap-drop ALL",
      "--new-session",
      "--hostname mosaic",
      "--json-status-fd 4",
      "--seccomp 5",
      "--block-fd 6",
      "--sync-fd 7",
      "--clearenv",
      "--setenv HOME /data/launches/acme/r/home",
      "--setenv LANG C.UTF-8",
      "--setenv LOGNAME agent",
      "--setenv MOSAIC_RUN_ID r0123456789ab",
      "--setenv PAGER cat",
      "--setenv PATH /opt/mosaic/node/bin:/usr/lib/go/bin:/usr/local/bin:/usr/bin:/bin",
      "--setenv SHELL /bin/bash",
      "--setenv TERM dumb",
      "--setenv TMPDIR /tmp",
      "--setenv TZ UTC",
      "--setenv USER agent",
      "--ro-bind /usr /usr",
      "--symlink usr/bin /bin",
      "--ro-bind /lib64 /lib64",
      "--perms 0444",
      "--ro-bind-data 8 /etc/passwd",
      "--perms 0444",
      "--ro-bind-data 9 /etc/group",
      "--perms 0444",
      "--ro-bind-data 10 /etc/hosts",
      "--perms 0444",
      "--ro-bind-data 11 /etc/nsswitch.conf",
      "--perms 0444",
      "--ro-bind-data 12 /etc/hostname",
      "--perms 0444",
      "--ro-bind-data 13 /etc/machine-id",
      "--ro-bind /usr/share/zoneinfo/UTC /etc/localtime",
      "--proc /proc",
      "--perms 0555",
      "--size 4096",
      "--tmpfs /proc/1",
      "--remount-ro /proc/1",
      "--ro-bind /proc/sys /proc/sys",
      "--dev /dev",
      "--perms 1777",
      "--size 268435456",
      "--tmpfs /dev/shm",
      "--perms 1777",
      "--size 536870912",
      "--tmpfs /tmp",
      "--perms 1777",
      "--size 67108864",
      "--tmpfs /var/tmp",
      "--perms 0755",
      "--size 4194304",
      "--tmpfs /run",
      "--perms 0700",
      "--size 65536",
      "--tmpfs /run/agent",
      "--perms 0755",
      "--size 65536",
      "--tmpfs /run/mosaic",
      "--ro-bind /data/bus-host/bus.sock /run/mosaic/bus.sock",
      "--remount-ro /run/mosaic",
      "--ro-bind /data/bus-host/node /opt/mosaic/runner-node",
      "--ro-bind /home/ada/.nvm/v20 /opt/mosaic/node",
      "--bind-fd 14 /data/launches/acme/r/home",
      "--bind-fd 15 /data/envs/acme/coder/workspace",
      "--bind-fd 16 /data/envs/acme/coder/state",
      "--bind-fd 17 /data/envs/acme/coder/cache",
      "--ro-bind-fd 18 /data/launches/acme/r/bundle",
      "--ro-bind-fd 19 /data/launches/acme/r/session.json",
      "--remount-ro /dev",
      "--remount-ro /",
      "--chdir /data/envs/acme/coder/workspace",
    ]
  `)
})

test('descriptors are numbered as they are named', () => {
  const { args, descriptors } = toArguments(sessionPlan(INPUT), SESSION)
  const at = (option: string): number => Number(args[args.indexOf(option) + 1])
  expect(descriptors[0]).toEqual({ role: 'arguments' })
  for (const [option, role] of [
    ['--json-status-fd', 'status'],
    ['--seccomp', 'seccomp'],
    ['--block-fd', 'block'],
    ['--sync-fd', 'lock'],
  ] as const)
    expect(descriptors[at(option) - 3]).toEqual({ role })
  expect(descriptors.filter(({ role }) => role === 'pinned')).toEqual([21, 22, 23, 24, 25, 26].map((fd) => ({ role: 'pinned', fd })))
})

test('without --bind-fd the trees are bound by name', () => {
  const { args, descriptors } = toArguments(sessionPlan(INPUT), { ...SESSION, bindFd: false })
  expect(args.join(' ')).toContain(`--bind ${INPUT.workspace.path} ${INPUT.workspace.path}`)
  expect(descriptors.some(({ role }) => role === 'pinned')).toBe(false)
})

test('a helper dies with its host, holds no block, no network and no socket, and shares no session path', () => {
  const plan = helperPlan({
    system: SYSTEM,
    uid: 1,
    gid: 1,
    env: {},
    programs: [],
    forbidden: INPUT.forbidden,
    cwd: '/data/x',
    binds: [
      { bind: { fd: 9, path: '/data/x' }, readOnly: false },
      { bind: { path: '/data/y' }, readOnly: true },
    ],
  })
  const { args } = toArguments(plan, { bindFd: true, locked: false })
  expect(args).toEqual(expect.arrayContaining(['--die-with-parent', '--block-fd', '--unshare-net']))
  for (const absent of ['--sync-fd', '/run/mosaic', '/run/agent']) expect(args).not.toContain(absent)
  expect(toArguments(sessionPlan(INPUT), SESSION).args).not.toContain('--die-with-parent')
})

test('network host shares the network and has a resolv.conf, none has neither', () => {
  const host = toArguments(sessionPlan({ ...INPUT, network: 'host' }), SESSION).args
  expect([host.includes('--unshare-net'), host.includes('/etc/resolv.conf')]).toEqual([false, true])
  const none = toArguments(sessionPlan(INPUT), SESSION).args
  expect([none.includes('--unshare-net'), none.includes('/etc/resolv.conf')]).toEqual([true, false])
})

test("the role's variables stand, but not against who the session is", () => {
  const { env } = sessionPlan({ ...INPUT, env: { LANG: 'de_DE.UTF-8', HOME: '/root', MOSAIC_RUN_ID: 'x' } })
  expect(env).toMatchObject({ LANG: 'de_DE.UTF-8', HOME: INPUT.home.path, MOSAIC_RUN_ID: INPUT.run })
  expect(env.PATH).toBe('/opt/mosaic/node/bin:/usr/lib/go/bin:/usr/local/bin:/usr/bin:/bin')
})

test('the hash is that of the plan: neither descriptors nor the order of variables change it, anything else does', () => {
  const { hash } = sessionPlan(INPUT)
  expect(hash).toMatch(/^[0-9a-f]{64}$/)
  expect(sessionPlan({ ...INPUT, env: { PAGER: 'cat' }, home: { ...INPUT.home, fd: 99 } }).hash).toBe(hash)
  expect(sessionPlan({ ...INPUT, env: { B: '1', A: '2' } }).hash).toBe(sessionPlan({ ...INPUT, env: { A: '2', B: '1' } }).hash)
  const changes: Partial<SessionPlanInput>[] = [
    { network: 'host' },
    { env: {} },
    { uid: 7 },
    { sockets: [] },
    { programs: [] },
    { limits: { ...INPUT.limits, pids: 9 } },
    { runnerNode: '/x' },
  ]
  const hashes = new Set(changes.map((change) => sessionPlan({ ...INPUT, ...change }).hash))
  expect(hashes.size).toBe(changes.length)
  expect(hashes.has(hash)).toBe(false)
})

test('a destination below a writable tree is a bug', () => {
  expect(() => sessionPlan({ ...INPUT, state: { fd: 1, path: `${INPUT.workspace.path}/state` } })).toThrow(/lies below .*writable/)
  expect(() => sessionPlan({ ...INPUT, bundle: { fd: 1, path: `${INPUT.home.path}/bundle` } })).toThrow(/lies below/)
})

test('what bubblewrap cannot be told is refused', () => {
  expect(() => toArguments(sessionPlan({ ...INPUT, env: { A: 'b\0c' } }), SESSION)).toThrow(/NUL/)
  expect(() => toArguments(sessionPlan({ ...INPUT, env: { A: 'x'.repeat(128 * 1024) } }), SESSION)).toThrow(/128 KiB/)
  const programs = Array.from({ length: 3001 }, (_, index) => ({ source: '/usr', dest: `/opt/${String(index)}` }))
  expect(() => toArguments(sessionPlan({ ...INPUT, programs }), SESSION)).toThrow(/arguments of 9000/)
})

/** A mountinfo as the kernel would write it for the plan. */
function mountinfo(plan: SandboxPlan): string[] {
  return [...expectedMounts(plan)].map(([at, { readOnly, type }], index) => {
    const options = [readOnly ? 'ro' : 'rw', 'nosuid', 'nodev', 'relatime'].join(',')
    return `${String(index)} 1 0:1 / ${at.replaceAll(' ', String.raw`\040`)} ${options} - ${type ?? 'ext4'} none rw`
  })
}

test('mounts are compared one by one', () => {
  const plan = sessionPlan({ ...INPUT, workspace: { fd: 1, path: '/data/my work' } })
  const good = mountinfo(plan)
  const judge = (change: (lines: string[]) => string[]): string[] => mountDifferences(parseMounts(change(good).join('\n')), plan)
  const edit = (at: string, from: string, to: string) => judge((all) => all.map((line) => (line.includes(` ${at} `) ? line.replace(from, to) : line)))
  expect(judge((all) => all)).toEqual([])
  expect(edit('/usr', 'ro,', 'rw,')).toEqual(['/usr is writable'])
  expect(edit(String.raw`/data/my\040work`, 'rw,', 'ro,')).toEqual(['/data/my work is read-only'])
  expect(edit('/tmp', ',nosuid', '')).toEqual(['/tmp is mounted without nosuid'])
  expect(edit('/tmp', ',nodev', '')).toEqual(['/tmp is mounted without nodev'])
  expect(edit('/proc/1', 'tmpfs', 'proc')).toEqual(['/proc/1 is proc, not tmpfs'])
  expect(judge((all) => all.filter((line) => !line.includes(' /proc/1 ')))).toEqual(['/proc/1 is not mounted'])
  expect(judge((all) => [...all, '99 1 0:1 / /home rw,nosuid,nodev - ext4 x rw'])).toEqual(['/home is mounted and not planned'])
  // what the host has mounted below /usr shows, read-only; below the workspace nothing may
  expect(judge((all) => [...all, '99 1 0:1 / /usr/share/x ro,nosuid,nodev - ext4 x rw'])).toEqual([])
  expect(judge((all) => [...all, '99 1 0:1 / /usr/share/x rw,nosuid,nodev - ext4 x rw'])).toEqual(['/usr/share/x is writable'])
  expect(judge((all) => [...all, String.raw`99 1 0:1 / /data/my\040work/x rw,nosuid,nodev - ext4 x rw`])).toEqual([
    '/data/my work/x is mounted and not planned',
  ])
})

let world: World
beforeAll(async () => {
  world = await openWorld()
})
afterAll(() => world[Symbol.asyncDispose]())

test('a sandbox made from another plan is told apart', async () => {
  const session = await world.open()
  await session.settle()
  const differences = (plan: SandboxPlan): string[] => sandboxDifferences(session.init.pid, plan)
  expect(differences(world.plan())).toEqual([])
  expect(differences(world.plan({ network: 'host' }))).toEqual(['/etc/resolv.conf is not mounted', 'its net namespace is its own'])
  expect(differences(world.plan({ uid: 7 }))).toEqual([expect.stringMatching(/^its uid_map is \d+ \d+ 1$/)])
  expect(differences(world.plan({ sockets: [] }))).toEqual(['/run/mosaic/bus.sock is mounted and not planned'])
  expect(sandboxDifferences(process.pid, world.plan())).toEqual(
    expect.arrayContaining([expect.stringContaining("namespace is the host's"), 'NoNewPrivs is off']),
  )
  await session.kill()
  expect(differences(world.plan())).toEqual([expect.stringContaining('it cannot be read')])
})
