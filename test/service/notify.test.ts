import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { sendDatagram } from '../../src/core/kernel.ts'
import { startTimeOf, waitGone } from '../../src/core/proc.ts'
import type { StatusRow } from '../../src/protocol/rows.ts'
import { until, World } from '../helpers/world.ts'
import { openReceiver, type Receiver } from './receiver.ts'

let world: World
let receiver: Receiver
let path: string
beforeEach(() => {
  world = new World()
  path = join(world.root, 'notify')
  receiver = openReceiver(path)
})
afterEach(async () => {
  await receiver.close()
  await world[Symbol.asyncDispose]()
})

test('systemd is told: ready with a status, alive twice an interval, reloading and ready again, stopping', async () => {
  const host = await world.start({ pm: true, env: { NOTIFY_SOCKET: path, WATCHDOG_USEC: '400000' } })
  expect(await receiver.next(/^READY=1$/m, 0)).toMatch(/^STATUS=acme: 1 sessions$/m)
  // ready means that it answers: the PM runs
  expect((await world.must<StatusRow>(['bus', 'status'])).sessions).toBe(1)
  const from = performance.now()
  await receiver.next(/^WATCHDOG=1$/m)
  await receiver.next(/^WATCHDOG=1$/m)
  expect(performance.now() - from).toBeLessThan(4000)
  const before = receiver.messages.length
  process.kill(host.pid, 'SIGHUP')
  const reloading = await receiver.next(/^RELOADING=1$/m, before)
  const startedUs = Number(/^MONOTONIC_USEC=(\d+)$/m.exec(reloading)?.[1])
  expect(Math.abs(Number(process.hrtime.bigint() / 1000n) - startedUs)).toBeLessThan(10_000_000)
  await receiver.next(/^READY=1$/m, before)
  const order = receiver.messages.slice(before).filter((text) => /RELOADING|READY/.test(text))
  expect(order.map((text) => text.split('=')[0])).toEqual(['RELOADING', 'READY'])
  expect(await host.stop()).toBe(0)
  await receiver.next(/^STOPPING=1$/m, 0)
  expect(receiver.messages.at(-1)).not.toContain('READY')
})

test('the word for a stop comes after the drain, with the time that sessions may take', async () => {
  const host = await world.start({ pm: true, env: { NOTIFY_SOCKET: path } })
  const asked = await world.run(['ask', 'pm', 'RUN sleep 60', '--timeout', '0s'])
  expect(asked.code).toBe(124)
  const founder = await world.founder()
  const id = asked.stdout.trim()
  await until('the turn runs', async () => (await founder.message(id)).state !== 'accepted')
  const stopping = world.run(['bus', 'stop', '--drain', '2s', '--timeout', '3m'])
  await until('it drains', () => host.output().includes('stopping'))
  expect(receiver.messages.some((text) => text.includes('STOPPING'))).toBe(false)
  expect(await receiver.next(/^STOPPING=1$/m, 0)).toMatch(/^EXTEND_TIMEOUT_USEC=240000000$/m)
  expect(await stopping).toMatchObject({ code: 0 })
})

test('an invalid configuration ends a reload all the same, and one refused to start says nothing', async () => {
  const host = await world.start({ env: { NOTIFY_SOCKET: path } })
  await receiver.next(/^READY=1$/m, 0)
  world.write(join(world.config, 'system.yaml'), 'version: 2\n')
  const before = receiver.messages.length
  process.kill(host.pid, 'SIGHUP')
  await receiver.next(/^READY=1$/m, before)
  const told = receiver.messages.length
  expect((await world.run(['bus', 'start'], { env: { NOTIFY_SOCKET: path } })).code).toBe(3)
  expect(receiver.messages.length).toBe(told)
  expect(receiver.messages.some((text) => text.includes('WATCHDOG'))).toBe(false)
})

test('an abstract socket, as nested managers use', async () => {
  const name = `@mosaic-test-${randomBytes(6).toString('hex')}`
  const abstract = openReceiver(name)
  sendDatagram(name, 'READY=1')
  await abstract.next(/^READY=1$/m, 0)
  await abstract.close()
})

test('--detach returns once the host is ready, and its exit status and words are those of one that is refused', async () => {
  const started = await world.run(['bus', 'start', '--business', 'acme', '--pm', '--detach'])
  expect(started.code).toBe(0)
  const status = await world.must<StatusRow>(['bus', 'status'])
  expect(status).toMatchObject({ ready: true, sessions: 1 })
  const host = { pid: status.pid, start: startTimeOf(status.pid) ?? '' }
  const second = await world.run(['bus', 'start', '--business', 'acme', '--detach'])
  expect([second.code, second.stderr]).toEqual([11, expect.stringContaining(`pid ${String(status.pid)}`)])
  expect((await world.run(['bus', 'stop'])).code).toBe(0)
  expect(await waitGone(host, { timeoutMs: 5000 })).toBe(true)
})
