import { lstatSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { until, World } from '../helpers/world.ts'

describe('a bus host', () => {
  test('makes a private data root with four sockets, and leaves no socket at its stop', async () => {
    await using world = new World()
    const host = await world.start()
    const status = await world.must<{ pid: number; ready: boolean; sockets: Record<string, string> }>(['bus', 'status'])
    expect(status).toMatchObject({ pid: host.pid, ready: true })
    for (const path of Object.values(status.sockets)) expect(lstatSync(path).mode & 0o777).toBe(0o600)
    expect(lstatSync(world.data).mode & 0o777).toBe(0o700)
    expect(await host.stop()).toBe(0)
    expect(readdirSync(join(world.data, 'bus-host')).filter((name) => name.endsWith('.sock'))).toEqual([])
    expect(host.output()).toMatch(/[0-9a-f]{64}/)
  })

  test('is alone on its data root: a second one exits 11 and names the first', async () => {
    await using world = new World()
    const host = await world.start()
    const second = await world.run(['bus', 'start', '--business', 'acme'])
    expect(second.code).toBe(11)
    expect(second.stderr).toContain(String(host.pid))
    expect((await world.json(['bus', 'status'])).code).toBe(0)
  })

  test('refuses a configuration with a wrong key, naming file, line and column, and touches nothing', async () => {
    await using world = new World()
    const file = join(world.config, 'businesses', 'acme.yaml')
    const text = readFileSync(file, 'utf8').replace('roles:', 'rolls:')
    world.write(file, text)
    const refused = await world.run(['bus', 'start'])
    const line = text.split('\n').findIndex((row) => row.startsWith('rolls:')) + 1
    expect(refused.code).toBe(3)
    expect(refused.stderr).toContain(`acme.yaml:${String(line)}:1`)
    expect(refused.stderr).toContain('roles')
    expect(readFileSync(file, 'utf8')).toBe(text)
    world.configure()
    await world.start()
  })

  test('takes a valid reload and keeps the old configuration at an invalid one', async () => {
    await using world = new World()
    await world.start()
    world.business = { ...world.business, launch: { by: 'pm', instances: ['coder'], max: { opus: 1, sonnet: 7 } } }
    world.configure()
    expect((await world.json(['bus', 'reload'])).code).toBe(0)
    const capacity = async () => (await world.must<{ capacity: Record<string, { max: number }> }>(['bus', 'status'])).capacity.sonnet?.max
    expect(await capacity()).toBe(7)
    world.business = { ...world.business, nonsense: true }
    world.configure()
    const refused = await world.json(['bus', 'reload'])
    expect([refused.code, refused.error.code]).toEqual([3, 'config-invalid'])
    expect(await capacity()).toBe(7)
  })

  test('says so when none runs: exit 10', async () => {
    await using world = new World()
    for (const args of [['ps'], ['bus', 'status'], ['bus', 'stop'], ['launch', 'coder']]) {
      const answer = await world.json(args)
      expect([args, answer.code, answer.error.code]).toEqual([args, 10, 'host-not-running'])
    }
  })

  test('detached, is ready when the command returns, and bus stop ends it', async () => {
    await using world = new World()
    const started = await world.run(['bus', 'start', '--business', 'acme', '--detach'])
    expect(started.code).toBe(0)
    const { pid } = await world.must<{ pid: number }>(['bus', 'status'])
    expect((await world.json(['bus', 'stop'])).code).toBe(0)
    await until('the host is gone', () => !readdirSync('/proc').includes(String(pid)))
    expect((await world.run(['bus', 'logs'])).stdout).toContain('host started')
  })
})
