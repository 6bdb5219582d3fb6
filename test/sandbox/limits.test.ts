import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { isAlive } from '../../src/core/proc.ts'
import { type CgroupParent, leafSettings, openCgroupParent, openLeaf, ownCgroup } from '../../src/sandbox/cgroup.ts'
import { toOutcome } from '../../src/sandbox/end.ts'
import { assertEnforceable, enforceable } from '../../src/sandbox/limits.ts'
import type { Limits } from '../../src/sandbox/plan.ts'
import { openWorld } from './world.ts'

const NONE: Limits = { memoryBytes: null, pids: null, cpus: null, enforce: 'available' }
const ALL: Limits = { memoryBytes: 2 ** 30, pids: 64, cpus: 1.5, enforce: 'available' }
const PARENT: CgroupParent = { dir: '/sys/fs/cgroup/x', controllers: ['memory', 'pids', 'cpu'] }

let root: string
beforeEach(() => {
  root = mkdtempSync('/tmp/ms-')
})
afterEach(() => rmSync(root, { recursive: true, force: true }))

test('a fork bomb ends at its limit and leaves the host alone', async () => {
  await using world = await openWorld()
  const inside = await world.start({ limits: { ...NONE, pids: 40 } })
  expect(inside.session.limits).toEqual({ pids: 'prlimit' })
  const forks = `const made = []; try { for (let i = 0; i < 200; i++) { const child = childProcess.spawn('/bin/sleep', ['600'], { stdio: 'ignore' }); child.on('error', () => undefined); if (child.pid === undefined) break; made.push(child) } } catch {} for (const child of made) child.kill('SIGKILL'); return made.length`
  const made = await inside.run(forks)
  expect(made).toBeGreaterThan(3)
  expect(made).toBeLessThan(40)
  // the control: without a limit the same goes through
  const free = await world.start()
  expect(free.session.limits).toEqual({})
  expect(await free.run(forks)).toBe(200)
})

test('a memory hog ends at its limit', async () => {
  await using world = await openWorld()
  const hog = `return sh('head -c 400000000 /dev/zero | tail >/dev/null').status`
  const inside = await world.start({ limits: { ...NONE, memoryBytes: 256 * 2 ** 20 } })
  expect(inside.session.limits).toEqual({ memoryBytes: 'prlimit' })
  expect(await inside.run(hog)).not.toBe(0)
  const free = await world.start()
  expect(await free.run(hog)).toBe(0)
})

test('core dumps are off and open files bounded in every session', async () => {
  await using world = await openWorld()
  const inside = await world.start()
  expect(await inside.run(`return sh('ulimit -Hc; ulimit -Hn').stdout`)).toMatch(/^0\n(65536|[1-5]?\d{1,4})$/)
})

test('what is enforced is said of each limit that is set', () => {
  expect(enforceable(NONE, null)).toEqual({})
  expect(enforceable(ALL, null)).toEqual({ memoryBytes: 'prlimit', pids: 'prlimit', cpus: 'none' })
  expect(enforceable(ALL, PARENT)).toEqual({ memoryBytes: 'cgroup', pids: 'cgroup', cpus: 'cgroup' })
  expect(enforceable(ALL, { ...PARENT, controllers: ['pids'] })).toEqual({ memoryBytes: 'prlimit', pids: 'cgroup', cpus: 'none' })
})

test('required limits that no cgroup keeps are refused', async () => {
  const required: Limits = { ...ALL, enforce: 'required' }
  expect(() => assertEnforceable(ALL, null)).not.toThrow()
  expect(() => assertEnforceable(required, PARENT)).not.toThrow()
  expect(() => assertEnforceable(required, null)).toThrow(
    expect.objectContaining({ code: 'limits-unavailable', message: expect.stringContaining('memoryBytes, pids, cpus') as string }),
  )
  expect(() => assertEnforceable(required, { ...PARENT, controllers: ['memory', 'pids'] })).toThrow(/keeps cpus/)
  await using world = await openWorld()
  const session = await world.open({ limits: required })
  await expect(session.settle()).rejects.toMatchObject({ code: 'limits-unavailable' })
  await session.ended
  expect(isAlive(session.init)).toBe(false)
})

test('our own cgroup is found in the unified hierarchy', () => {
  const mounts = '30 25 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n'
  expect(ownCgroup('0::/system.slice/mosaic.service\n', mounts)).toBe('/sys/fs/cgroup/system.slice/mosaic.service')
  expect(ownCgroup('9:pids:/x\n0::/\n', mounts)).toBe('/sys/fs/cgroup')
  expect(ownCgroup('9:pids:/x\n', mounts)).toBeNull()
  expect(ownCgroup('0::/x\n', '')).toBeNull()
  expect(ownCgroup('0::/../outside\n', mounts)).toBeNull()
})

/** A directory that stands in for a cgroup where this machine delegates none: it shows what is written where. */
function directory(controllers: string, procs: string): string {
  const dir = join(root, 'cgroup')
  mkdirSync(dir)
  for (const [name, text] of Object.entries({ 'cgroup.controllers': controllers, 'cgroup.procs': procs, 'cgroup.subtree_control': '' }))
    writeFileSync(join(dir, name), text)
  return dir
}

test('a delegated cgroup: we move into a leaf, then hand its controllers down', async () => {
  const dir = directory('cpuset cpu io memory pids\n', '77\n')
  const parent = await openCgroupParent(dir, 77)
  expect(parent).toEqual({ dir, controllers: ['memory', 'pids', 'cpu'] })
  expect(readFileSync(join(dir, 'host/cgroup.procs'), 'utf8')).toBe('77')
  expect(readFileSync(join(dir, 'cgroup.subtree_control'), 'utf8')).toBe('+memory +pids +cpu')
  const leaf = await openLeaf({ dir, controllers: PARENT.controllers }, 'run-r1', ALL)
  await leaf.add(99)
  expect(readFileSync(join(leaf.dir, 'cgroup.procs'), 'utf8')).toBe('99')
  for (const [file, value] of leafSettings(ALL, PARENT.controllers)) expect(readFileSync(join(leaf.dir, file), 'utf8')).toBe(value)
  expect(await leaf.hasOutOfMemory()).toBe(false)
  writeFileSync(join(leaf.dir, 'memory.events'), 'low 0\noom 1\noom_kill 3\n')
  expect(await leaf.hasOutOfMemory()).toBe(true)
  expect(leafSettings(ALL, PARENT.controllers)).toContainEqual(['cpu.max', '150000 100000'])
})

test('a leaf is given what its controllers keep; the rest does not cost it', async () => {
  const dir = directory('memory pids', '77\n')
  const leaf = await openLeaf({ dir, controllers: ['memory', 'pids'] }, 'run-r1', ALL)
  expect(readdirSync(leaf.dir).sort()).toEqual(['memory.max', 'memory.oom.group', 'memory.swap.max', 'pids.max'])
})

test('a leaf that cannot be limited leaves no directory', async () => {
  const dir = directory('memory pids', '77\n')
  const usual = process.umask(0o300)
  try {
    await expect(openLeaf({ dir, controllers: ['memory', 'pids'] }, 'run-r1', { ...ALL, memoryBytes: null })).rejects.toThrow('EACCES')
  } finally {
    process.umask(usual)
  }
  expect(readdirSync(dir)).not.toContain('run-r1')
})

test('a cgroup that is shared, has no controllers, or is not ours is left alone', async () => {
  expect(await openCgroupParent(null)).toBeNull()
  expect(await openCgroupParent(join(root, 'absent'))).toBeNull()
  const dir = directory('memory pids', '77\n78\n')
  expect(await openCgroupParent(dir, 77)).toBeNull()
  writeFileSync(join(dir, 'cgroup.procs'), '77\n')
  writeFileSync(join(dir, 'cgroup.controllers'), '')
  expect(await openCgroupParent(dir, 77)).toBeNull()
  writeFileSync(join(dir, 'cgroup.controllers'), 'pids')
  expect(await openCgroupParent(dir, 77)).toEqual({ dir, controllers: ['pids'] })
})

test('codes over 128 are signals again', () => {
  expect([134, 135, 157].map((code) => toOutcome(code).signal)).toEqual(['SIGABRT', 'SIGBUS', 'SIGIO'])
  expect([0, 1, 23, 128, 137, 139, 143, 255, null].map((code) => toOutcome(code))).toEqual([
    { exitCode: 0, signal: null },
    { exitCode: 1, signal: null },
    { exitCode: 23, signal: null },
    { exitCode: 128, signal: null },
    { exitCode: null, signal: 'SIGKILL' },
    { exitCode: null, signal: 'SIGSEGV' },
    { exitCode: null, signal: 'SIGTERM' },
    { exitCode: 255, signal: null },
    { exitCode: null, signal: null },
  ])
})
