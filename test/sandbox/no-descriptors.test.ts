import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type * as fs from 'node:fs'
import { afterEach, expect, onTestFinished, test, vi } from 'vitest'
import type { Child } from '../../src/core/children.ts'
import { signalProcess } from '../../src/core/kernel.ts'
import { silentLog, type Log } from '../../src/core/log.ts'
import { isAlive, parentOf, type ProcessId, startTimeOf, statusOf, waitGone } from '../../src/core/proc.ts'
import { watchEnd } from '../../src/sandbox/end.ts'
import type { StatusChannel } from '../../src/sandbox/status.ts'

/** What reading /proc fails with; null: nothing. */
const failing = vi.hoisted(() => ({ code: null as string | null }))
vi.mock('node:fs', async (original) => {
  const real = await original<typeof fs>()
  const readFileSync = (...args: Parameters<typeof real.readFileSync>): unknown => {
    if (failing.code !== null && String(args[0]).startsWith('/proc/')) throw Object.assign(new Error(failing.code), { code: failing.code })
    return real.readFileSync(...args)
  }
  return { ...real, readFileSync }
})
afterEach(() => {
  failing.code = null
})

async function startSleeper(): Promise<{ readonly id: ProcessId; readonly exit: Promise<unknown[]> }> {
  const sleeper = spawn('/bin/sleep', ['600'], { stdio: 'ignore' })
  const exit = once(sleeper, 'exit')
  await once(sleeper, 'spawn')
  onTestFinished(() => void sleeper.kill('SIGKILL'))
  return { id: { pid: sleeper.pid ?? 0, start: startTimeOf(sleeper.pid ?? 0) ?? '' }, exit }
}

const SHORT = { timeoutMs: 20 }

test.each(['EMFILE', 'ENFILE', 'ENOMEM'])('%s tells nobody that a process is gone, and who goes by what is there finds nothing', async (code) => {
  const { id } = await startSleeper()
  failing.code = code
  expect(() => isAlive(id)).toThrow(code)
  expect(() => startTimeOf(id.pid)).toThrow(code)
  expect(() => signalProcess(id, 'SIGKILL')).toThrow(code)
  expect(await waitGone(id, SHORT)).toBe(false)
  expect([parentOf(id.pid), statusOf(id.pid)]).toEqual([null, {}])
  failing.code = null
  expect(isAlive(id)).toBe(true)
})

test.each(['ENOENT', 'ESRCH'])('%s does', async (code) => {
  const { id } = await startSleeper()
  failing.code = code
  expect([isAlive(id), startTimeOf(id.pid), await waitGone(id, SHORT)]).toEqual([false, null, true])
})

/** A log whose first warning ends the shortage. */
const relieving = (warned: string[]): Log =>
  ({
    ...silentLog,
    warn: (_fields: object, what: string) => {
      warned.push(what)
      failing.code = null
    },
  }) as unknown as Log

test('an end that comes while no descriptor is free is told once pid 1 could be killed', async () => {
  const { id, exit } = await startSleeper()
  const warned: string[] = []
  const status: StatusChannel = { childPid: Promise.resolve(null), closed: Promise.resolve(), exitCode: () => 0 }
  const child = { exited: Promise.resolve() } as unknown as Child
  failing.code = 'EMFILE'
  const { signal } = new AbortController()
  const end = await watchEnd({ child, status, init: id, leaf: () => Promise.resolve(null), hopeless: signal, log: relieving(warned) })
  expect([end.exitCode, warned, (await exit)[1], isAlive(id)]).toEqual([0, ['a sandbox cannot be killed yet'], 'SIGKILL', false])
})

test('it is told all the same once it is hopeless', async () => {
  const { id } = await startSleeper()
  const status: StatusChannel = { childPid: Promise.resolve(null), closed: Promise.resolve(), exitCode: () => null }
  const child = { exited: Promise.resolve() } as unknown as Child
  failing.code = 'EMFILE'
  const hopeless = AbortSignal.timeout(60)
  const end = await watchEnd({ child, status, init: id, leaf: () => Promise.resolve(null), hopeless, log: silentLog })
  expect(end.statusLost).toBe(true)
})
