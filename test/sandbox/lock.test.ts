import { closeSync, openSync } from 'node:fs'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { tryFlock } from '../../src/core/kernel.ts'
import { bootId, isAlive } from '../../src/core/proc.ts'
import { killLeftover } from '../../src/sandbox/leftover.ts'
import { openWorld, type World } from './world.ts'

let world: World
beforeEach(async () => {
  world = await openWorld()
})
afterEach(() => world[Symbol.asyncDispose]())

/** Tries whatever might free or take a lock that process `pid` holds; which descriptors of it could be taken over. */
const steal = (pid: number): string => `
  const found = []
  for (const fd of fs.readdirSync('/proc/self/fd').map(Number)) unlock(fd)
  const pidfd = call(434, ${String(pid)}, 0)
  for (let fd = 0; fd < 64; fd++) {
    const taken = call(438, pidfd, fd, 0)
    if (taken < 0) continue
    found.push(fd)
    unlock(taken)
  }
  for (let fd = 0; fd < 64; fd++) {
    const opened = await attempt(() => fs.openSync('/proc/${String(pid)}/fd/' + fd, 'r+'))
    if (typeof opened === 'number') unlock(opened)
  }
  return { found, memory: await attempt(() => fs.closeSync(fs.openSync('/proc/${String(pid)}/mem', 'r+'))), entries: await attempt(() => fs.readdirSync('/proc/${String(pid)}')) }`

test('pid 1 holds the lock once its spawner has closed it, until nothing is left', async () => {
  const inside = await world.start()
  world.dropLock()
  expect(world.isLocked()).toBe(true)
  expect(await inside.run(`return sh('setsid -f sleep 600 >/dev/null 2>&1').status`)).toBe(0)
  inside.session.signalRunner('SIGKILL')
  expect(await inside.session.ended).toMatchObject({ signal: 'SIGKILL' })
  expect(isAlive(inside.session.init)).toBe(false)
  expect(world.isLocked()).toBe(false)
})

test('nothing inside can release or take it', async () => {
  const inside = await world.start()
  world.dropLock()
  expect(await inside.run(steal(1))).toEqual({ found: [], memory: 'ENOENT', entries: [] })
  expect(world.isLocked()).toBe(true)
  const [ptrace, vmWrite] = process.arch === 'x64' ? [101, 311] : [117, 271]
  expect(await inside.run(`return [syscall(${String(ptrace)}, 16, 1, 0, 0), syscall(${String(vmWrite)}, 1, 0, 0, 0, 0, 0)]`)).toEqual(['EPERM', 'EPERM'])
  expect(await inside.run(`return attempt(() => fs.writeFileSync('/proc/1/x', ''))`)).toBe('EROFS')
  expect(await inside.run(`return attempt(() => process.kill(1, 'SIGKILL'))`)).toBe(true)
  expect(isAlive(inside.session.init)).toBe(true)
  expect(world.isLocked()).toBe(true)
})

test('the control: outside, the same attempts take it from a process that holds it plainly', async () => {
  const outside = await world.outside()
  world.dropLock()
  const fd = openSync(world.lockPath, 'r+')
  expect(tryFlock(fd)).toBe(true)
  const holder = spawn('/usr/bin/sleep', ['600'], { stdio: ['ignore', 'ignore', 'ignore', fd] })
  await once(holder, 'spawn')
  closeSync(fd)
  expect(world.isLocked()).toBe(true)
  const stolen = await outside.run(steal(holder.pid ?? 0))
  expect(stolen).toMatchObject({ found: [0, 1, 2, 3], memory: 'ok' })
  expect(world.isLocked()).toBe(false)
  holder.kill('SIGKILL')
  await once(holder, 'exit')
})

test('a leftover is ended by pid, start time and boot, a stopped one too, and never one that only has its pid', async () => {
  const inside = await world.start()
  const { monitor, init } = inside.session
  world.dropLock()
  await killLeftover({ monitor, init }, { bootId: 'another boot' })
  await killLeftover({ monitor: { ...monitor, start: '1' }, init: { ...init, start: '1' } }, { bootId: bootId() })
  expect([isAlive(monitor), isAlive(init), world.isLocked()]).toEqual([true, true, true])
  inside.session.signalRunner('SIGSTOP')
  await killLeftover({ monitor, init }, { bootId: bootId() })
  expect([isAlive(monitor), isAlive(init), isAlive(inside.runner), world.isLocked()]).toEqual([false, false, false, false])
  await killLeftover({ monitor: null, init: null }, { bootId: bootId() })
})
