import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { expect, test } from 'vitest'
import type { Child } from '../../src/core/children.ts'
import { silentLog } from '../../src/core/log.ts'
import { startTimeOf } from '../../src/core/proc.ts'
import { watchEnd } from '../../src/sandbox/end.ts'
import type { StatusChannel } from '../../src/sandbox/status.ts'

const never = new Promise<never>(() => undefined)
const GONE = { pid: 2 ** 22, start: '1' }

test('a monitor that never exits is waited for until it is hopeless', async () => {
  const child = { exited: never } as unknown as Child
  const status: StatusChannel = { childPid: never, closed: never, exitCode: () => null }
  const controller = new AbortController()
  const ended = watchEnd({ child, status, init: GONE, leaf: () => Promise.resolve(null), hopeless: controller.signal, log: silentLog })
  controller.abort()
  expect(await ended).toEqual({ exitCode: null, signal: null, outOfMemory: false, statusLost: true })
})

test('what SIGKILL reaches is gone before the end is told', async () => {
  const sleeper = spawn('/bin/sleep', ['600'], { stdio: 'ignore' })
  await once(sleeper, 'spawn')
  const init = { pid: sleeper.pid ?? 0, start: startTimeOf(sleeper.pid ?? 0) ?? '' }
  const child = { exited: Promise.resolve() } as unknown as Child
  const status: StatusChannel = { childPid: never, closed: Promise.resolve(), exitCode: () => 0 }
  const gone = once(sleeper, 'exit')
  const end = await watchEnd({ child, status, init, leaf: () => Promise.resolve(null), hopeless: new AbortController().signal, log: silentLog })
  expect([end.exitCode, (await gone)[1]]).toEqual([0, 'SIGKILL'])
})
