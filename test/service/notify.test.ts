import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { sendDatagram } from '../../src/core/kernel.ts'
import { createLog, silentLog } from '../../src/core/log.ts'
import { keepStatus, openNotifier } from '../../src/daemon/notify.ts'
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

/** The pid of a host as soon as it holds the lock: it opens its store, recovers and launches its PM only then. */
async function starting(): Promise<number> {
  const lock = join(world.data, 'bus-host', 'host.lock')
  const pid = (): number => (existsSync(lock) ? Number.parseInt(readFileSync(lock, 'utf8'), 10) : Number.NaN)
  await until('a host holds the lock', () => Number.isInteger(pid()))
  return pid()
}

test('a reload that is asked for while it starts ends no host, and says nothing before it is ready', async () => {
  const started = world.start({ pm: true, env: { NOTIFY_SOCKET: path } })
  process.kill(await starting(), 'SIGHUP')
  const host = await started
  expect(host.output()).toContain('configuration reloaded')
  await receiver.next(/^READY=1$/m, 0)
  expect(receiver.messages[0]).toMatch(/^READY=1\nSTATUS=acme: 1 sessions$/)
  expect(receiver.messages.some((text) => text.includes('RELOADING'))).toBe(false)
  // the control: one that is ready tells of both
  process.kill(host.pid, 'SIGHUP')
  await receiver.next(/^RELOADING=1$/m, 0)
})

test('a stop that is asked for while it starts is an orderly one', async () => {
  const ended = world.startInVain({ NOTIFY_SOCKET: path })
  process.kill(await starting(), 'SIGTERM')
  expect(await ended).toEqual({ code: 0, signal: null })
  expect(receiver.messages.some((text) => text.includes('READY'))).toBe(false)
})

test('the status is kept current', async () => {
  await world.start({ env: { NOTIFY_SOCKET: path } })
  expect(await receiver.next(/^READY=1$/m, 0)).toMatch(/^STATUS=acme: 0 sessions$/m)
  await world.must(['launch', 'coder'])
  await receiver.next(/^STATUS=acme: 1 sessions$/, 0)
  await world.must(['stop', 'coder'])
  // without READY: not the one of the start
  await receiver.next(/^STATUS=acme: 0 sessions$/, 0)
})

test('a status is said when it has changed, and not once it is over', async () => {
  const listeners = new Set<() => void>()
  const said: string[] = []
  let status: string | null = 'a'
  const change = (to: string | null): void => {
    status = to
    for (const listener of listeners) listener()
  }
  const onChange = (listener: () => void): (() => void) => {
    listeners.add(listener)
    return () => void listeners.delete(listener)
  }
  const end = keepStatus({ onChange }, { status: (text) => void said.push(text) }, () => status)
  change('a')
  change('b')
  await until('it is said', () => said.length > 0)
  change(null)
  end()
  expect([said, listeners.size]).toEqual([['b'], 0])
})

test('a systemd that cannot be told is logged once, and ends nobody', async () => {
  const lines: string[] = []
  const log = createLog({ write: (line: string) => void lines.push(line) }, 'trace')
  const gone = join(world.root, 'gone')
  await using notifier = openNotifier({ NOTIFY_SOCKET: gone, WATCHDOG_USEC: '2000' }, log)
  notifier.ready('x')
  expect(lines).toHaveLength(1)
  expect(lines[0]).toContain('systemd could not be told')
  const back = openReceiver(gone)
  await back.next(/^WATCHDOG=1$/m, 0)
  await back.close()
  await until('it fails again', () => lines.length > 1)
})

test('the word for a stop has all the time that it may take, also for as long as sessions may be given', async () => {
  await using notifier = openNotifier({ NOTIFY_SOCKET: path }, silentLog)
  for (const [timeoutMs, us] of [
    [0, '60000000'],
    [86_400_000, '86460000000'],
  ] as const) {
    notifier.stopping(timeoutMs)
    // whole, never as 8.6e10: systemd reads digits
    expect(await receiver.next(new RegExp(`^EXTEND_TIMEOUT_USEC=${us}$`, 'm'), 0)).toBe(`STOPPING=1\nEXTEND_TIMEOUT_USEC=${us}`)
  }
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
  await world.must(['launch', 'coder'])
  const { run } = (await world.must<{ instance: string; run: string }[]>(['ps'])).find(({ instance }) => instance === 'coder') ?? { run: 'none' }
  const second = await world.run(['bus', 'start', '--business', 'acme', '--detach'])
  expect([second.code, second.stderr]).toEqual([11, expect.stringContaining(`pid ${String(status.pid)}`)])
  expect((await world.run(['bus', 'stop'])).code).toBe(0)
  expect(await waitGone(host, { timeoutMs: 5000 })).toBe(true) // nobody watches it: its own words are few, the events are in host.log and the store
  const words = readFileSync(join(world.data, 'bus-host', 'start.log'), 'utf8')
  expect(words).toMatch(/^mosaic .*\n(.*\n)*ready: .*\nstopping\nstopped; the trail ends at [0-9a-f]{64}\n$/)
  expect(words).not.toContain(run)
  expect(readFileSync(join(world.data, 'bus-host', 'host.log'), 'utf8')).toContain(run)
})
