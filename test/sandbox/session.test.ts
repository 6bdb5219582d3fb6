import { execFileSync } from 'node:child_process'
import { closeSync, constants, mkdirSync, openSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { setImmediate } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { codeOf } from '../../src/core/errors.ts'
import { signalProcess } from '../../src/core/kernel.ts'
import { silentLog } from '../../src/core/log.ts'
import { childrenOf, isAlive, statusOf, waitGone } from '../../src/core/proc.ts'
import { createBwrap } from '../../src/sandbox/bwrap.ts'
import { openSession } from '../../src/sandbox/session.ts'
import { BWRAP, openWorld, type World } from './world.ts'

let world: World
beforeEach(async () => {
  world = await openWorld()
})
afterEach(() => world[Symbol.asyncDispose]())

test('a session settles as planned, runs its command behind the block, and ends with its code', async () => {
  const session = await world.open({}, ['/bin/sh', '-c', 'read line; echo "$line" > word; exit 7'])
  await session.settle()
  expect(statusOf(session.init.pid).Seccomp).toBe('0')
  expect(session.signalRunner('SIGTERM')).toBe(false)
  const runner = await session.unblock()
  expect(statusOf(runner.pid).NSpid?.split('\t').at(-1)).toBe('2')
  session.stdin.end('hello\n')
  expect(await session.ended).toEqual({ exitCode: 7, signal: null, outOfMemory: false, statusLost: false })
  expect(readFileSync(`${world.workspace}/word`, 'utf8')).toBe('hello\n')
  expect([isAlive(session.init), isAlive(session.monitor), isAlive(runner)]).toEqual([false, false, false])
})

test('a signal that nobody handles is read back as that signal, also from a stopped runner', async () => {
  const first = await world.open()
  await first.settle()
  await first.unblock()
  expect(first.signalRunner('SIGTERM')).toBe(true)
  expect(await first.ended).toMatchObject({ exitCode: null, signal: 'SIGTERM', statusLost: false })

  const second = await world.open()
  await second.settle()
  await second.unblock()
  second.signalRunner('SIGSTOP')
  await second.kill()
  expect(await second.ended).toMatchObject({ exitCode: null, signal: 'SIGKILL', statusLost: false })
})

test('the monitor killed is a lost status, and ends all that it watched', async () => {
  const session = await world.open()
  await session.settle()
  const runner = await session.unblock()
  signalProcess(session.monitor, 'SIGKILL')
  expect(await session.ended).toEqual({ exitCode: null, signal: null, outOfMemory: false, statusLost: true })
  expect([isAlive(session.init), isAlive(runner)]).toEqual([false, false])
})

test('a stopped monitor does not keep a kill from ending', async () => {
  const session = await world.open()
  await session.settle()
  await session.unblock()
  signalProcess(session.monitor, 'SIGSTOP')
  await session.kill()
  expect([isAlive(session.init), isAlive(session.monitor)]).toEqual([false, false])
})

test('what double-forks into its own session is gone with it', async () => {
  const inside = await world.start()
  const before = await inside.run(`return sh('setsid -f sleep 600 >/dev/null 2>&1; until ps -eo args | grep "^slee[p]"; do :; done')`)
  expect(before).toMatchObject({ stdout: 'sleep 600' })
  const seen = await inside.run(`return fs.readdirSync('/proc').filter(Number).length`)
  expect(seen).toBe(3)
  await inside.session.kill()
  expect(await waitGone(inside.runner, { timeoutMs: 0 })).toBe(true)
  expect(world.isLocked()).toBe(true) // by us
  world.dropLock()
  expect(world.isLocked()).toBe(false)
})

test('a session killed behind the block leaves nothing', async () => {
  const session = await world.open()
  await session.kill()
  await session.kill()
  expect(isAlive(session.init)).toBe(false)
  await expect(session.settle()).rejects.toMatchObject({ code: 'spawn-failed' })
})

test('a workspace swapped after it was pinned: the pinned one is inside', async () => {
  writeFileSync(`${world.workspace}/mine`, '')
  renameSync(world.workspace, world.path('env/aside'))
  mkdirSync(world.workspace)
  const inside = await world.start()
  expect(await inside.run(`return fs.readdirSync('.')`)).toEqual(['mine'])
})

test('without --bind-fd the same swap is a mismatch', async () => {
  const byName = { ...world.bwrap, features: () => Promise.resolve({ bindFd: false, identity: '' }) }
  const [lockFd, stderrFd] = [openSync(world.lockPath, 'r+'), openSync(world.logPath, 'a')]
  const open = () => openSession({ bwrap: byName, cgroup: null, log: silentLog }, { plan: world.plan(), command: ['/bin/cat'], lockFd, stderrFd })
  const same = await open()
  await same.settle()
  await same.kill()
  renameSync(world.workspace, world.path('env/aside'))
  mkdirSync(world.workspace)
  const swapped = await open()
  await expect(swapped.settle()).rejects.toMatchObject({
    code: 'sandbox-mismatch',
    message: expect.stringContaining(`${world.workspace} is not what was pinned`) as string,
  })
  expect(isAlive(swapped.init)).toBe(false)
  for (const fd of [lockFd, stderrFd]) closeSync(fd)
})

test('a sandbox that is no good is given up once its limits are set: no cgroup leaf is made behind its end', async () => {
  const byName = { ...world.bwrap, features: () => Promise.resolve({ bindFd: false, identity: '' }) }
  const [lockFd, stderrFd] = [openSync(world.lockPath, 'r+'), openSync(world.logPath, 'a')]
  // it stands in for a cgroup: a write into it takes as long as nobody reads
  const dir = world.path('cgroup')
  const leaf = `${dir}/run-r0123456789ab`
  mkdirSync(leaf, { recursive: true })
  execFileSync('mkfifo', [`${leaf}/pids.max`])
  const deps = { bwrap: byName, cgroup: { dir, controllers: ['pids'] }, log: silentLog }
  const plan = world.plan({ limits: { memoryBytes: null, pids: 50, cpus: null, enforce: 'available' } })
  renameSync(world.workspace, world.path('env/aside'))
  mkdirSync(world.workspace)
  const session = await openSession(deps, { plan, command: ['/bin/cat'], lockFd, stderrFd })
  let over = false
  const settled = session.settle().catch((error: unknown) => {
    over = true
    return codeOf(error)
  })
  while (isAlive(session.init)) await setImmediate()
  for (let turn = 0; turn < 50; turn++) await setImmediate()
  expect(over).toBe(false)
  // waits for no writer
  const reader = openSync(`${leaf}/pids.max`, constants.O_RDONLY | constants.O_NONBLOCK)
  expect(await settled).toBe('sandbox-mismatch')
  for (const fd of [lockFd, stderrFd, reader]) closeSync(fd)
})

test('a setup that fails says why in its own words', async () => {
  const opening = world.open({ programs: [{ source: '/nonexistent/program', dest: '/opt/program' }] }).then(async (session) => session.settle())
  await expect(opening).rejects.toMatchObject({ code: 'spawn-failed', message: expect.stringMatching(/bwrap failed: .*nonexistent/) as string })
})

test('a command that is not there fails to spawn', async () => {
  const session = await world.open({}, ['/nonexistent'])
  await session.settle()
  await expect(session.unblock()).rejects.toMatchObject({
    code: 'spawn-failed',
    message: expect.stringContaining('execvp /nonexistent: No such file') as string,
  })
  expect(await session.ended).toEqual({ exitCode: null, signal: null, outOfMemory: false, statusLost: true })
})

test('an abort while it opens leaves no process', async () => {
  const [lockFd, stderrFd] = [openSync(world.lockPath, 'r+'), openSync(world.logPath, 'a')]
  const controller = new AbortController()
  const { signal } = controller
  const before = childrenOf(process.pid)
  const deps = { bwrap: world.bwrap, cgroup: null, log: silentLog }
  await world.bwrap.features()
  const opening = openSession(deps, { plan: world.plan(), command: ['/bin/cat'], lockFd, stderrFd, signal })
  // bubblewrap is about to be started, in this very turn of the loop; a turn later all may be done
  controller.abort(new Error('enough'))
  await expect(opening).rejects.toThrow('enough')
  expect(childrenOf(process.pid).filter((pid) => !before.includes(pid) && !(statusOf(pid).State ?? 'Z').startsWith('Z'))).toEqual([])
  for (const fd of [lockFd, stderrFd]) closeSync(fd)
  world.dropLock()
  expect(world.isLocked()).toBe(false)
})

test('a bubblewrap that is stuck before it has made pid 1 costs its deadline, or is ended by the signal; nothing is left', async () => {
  const path = world.path('stuck')
  writeFileSync(path, `#!/bin/sh\n[ "$1" = --help ] && exec ${BWRAP} --help\necho $$ >> ${world.path('pids')}\nexec sleep 600\n`, { mode: 0o755 })
  const fd = openSync(world.logPath, 'a')
  const request = { plan: world.plan(), command: ['/bin/cat'], lockFd: fd, stderrFd: fd }
  const deps = { bwrap: createBwrap(path), cgroup: null, log: silentLog }
  await expect(openSession(deps, { ...request, startMs: 200 })).rejects.toMatchObject({
    code: 'spawn-failed',
    message: expect.stringContaining('0.2 s') as string,
  })
  const signal = AbortSignal.timeout(200)
  await expect(openSession(deps, { ...request, signal })).rejects.toMatchObject({ name: 'TimeoutError' })
  const pids = readFileSync(world.path('pids'), 'utf8').trim().split('\n').map(Number)
  expect(pids.length).toBeGreaterThan(0)
  expect(pids.filter((pid) => !(statusOf(pid).State ?? 'Z').startsWith('Z'))).toEqual([])
  closeSync(fd)
})
