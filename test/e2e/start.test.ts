import { spawn } from 'node:child_process'
import { lstatSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { processesOf, PROGRAM, until, World } from '../helpers/world.ts'

describe('a bus host', () => {
  test('makes a private data root with four sockets, and leaves no socket at its stop', async () => {
    await using world = new World()
    const host = await world.start()
    const status = await world.must<{ pid: number; ready: boolean; sockets: Record<string, string> }>(['bus', 'status'])
    expect(status).toMatchObject({ pid: host.pid, ready: true })
    for (const path of Object.values(status.sockets)) expect(lstatSync(path).mode & 0o777).toBe(0o600)
    expect(lstatSync(world.data).mode & 0o777).toBe(0o700)
    // read and write: the runner's Node is execute-only, for all; git's configuration is empty and read-only
    const open = readdirSync(world.data, { recursive: true, encoding: 'utf8' }).filter((name) => (lstatSync(join(world.data, name)).mode & 0o066) !== 0)
    expect(open).toEqual([join('git', '.gitconfig')])
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

  test('is found where a longer form of YAML says that its data root is', async () => {
    await using world = new World()
    const file = join(world.config, 'system.yaml')
    world.write(file, readFileSync(file, 'utf8').replace(/^dataRoot: (.*)$/m, 'dataRoot: >-\n  $1'))
    await world.start()
    expect(await world.must(['bus', 'status'])).toMatchObject({ dataRoot: world.data })
    expect((await world.run(['config', 'show'])).stdout).toContain(`dataRoot: ${world.data}\n`)
  })

  test('says so when none runs: exit 10', async () => {
    await using world = new World()
    for (const args of [['ps'], ['bus', 'status'], ['bus', 'stop'], ['launch', 'coder']]) {
      const answer = await world.json(args)
      expect([args, answer.code, answer.error.code]).toEqual([args, 10, 'host-not-running'])
    }
  })

  test('detached, tells programs its row, and why it did not start', async () => {
    await using world = new World()
    const start = ['bus', 'start', '--business', 'acme', '--detach']
    const started = await world.must<{ pid: number; ready: boolean; business: string }>(start)
    expect(started).toMatchObject({ ready: true, business: 'acme' })
    const second = await world.json(start)
    expect([second.code, second.error.code, second.stderr]).toEqual([11, 'host-running', ''])
    expect(second.error.message).toContain(String(started.pid))
    const restarted = await world.must<{ pid: number; ready: boolean }>(['bus', 'restart'])
    expect(restarted).toMatchObject({ ready: true })
    expect(restarted.pid).not.toBe(started.pid)
    await world.must(['bus', 'stop'])
    const quiet = await world.run([...start, '-q'])
    expect(quiet.stdout).toMatch(/^\d+\n$/)
    await world.must(['bus', 'stop'])
    const people = await world.run(start)
    expect(people.stdout).toMatch(/^the bus host of acme is ready \(pid \d+\)\n$/)
    await world.must(['bus', 'stop'])
  })

  test('refused for its PM it says so to programs, detached or not, and exits 3', async () => {
    await using world = new World()
    world.business.launch = { by: 'pm', instances: ['coder'], max: { sonnet: 2 } }
    world.configure()
    for (const more of [[], ['--detach']]) {
      const refused = await world.json(['bus', 'start', '--business', 'acme', '--pm', ...more])
      expect([refused.code, refused.error.code]).toEqual([3, 'capacity-full'])
      expect(refused.error.message).toMatch(/^PM launch refused: capacity-full \(/)
      expect((await world.run(['bus', 'start', '--business', 'acme', '--pm', ...more])).stderr).toContain('PM launch refused: capacity-full (')
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

  test('detached, a second one leaves the log of the first alone', async () => {
    await using world = new World()
    await using _ = await world.startDetached()
    const log = join(world.data, 'bus-host', 'start.log')
    const before = readFileSync(log, 'utf8')
    expect(before).toContain('ready: ')
    expect(await world.run(['bus', 'start', '--business', 'acme', '--detach'])).toMatchObject({ code: 11, stderr: expect.stringContaining('holds') as string })
    expect(readFileSync(log, 'utf8')).toBe(before)
    expect(readdirSync(dirname(log)).filter((name) => name.startsWith('start'))).toEqual(['start.log'])
  })

  test('detached, it becomes ready although the command that started it is gone', async () => {
    await using world = new World()
    const child = spawn(process.execPath, [PROGRAM, 'bus', 'start', '--business', 'acme', '--detach'], { cwd: world.root, env: world.env, stdio: 'ignore' })
    await until('the host is there', () => processesOf(world.root).some((pid) => pid !== child.pid))
    child.kill('SIGKILL')
    await until('the host is ready', async () => (await world.json(['bus', 'status'])).code === 0)
    // a turn of the loop after its word to nobody it still answers
    expect((await world.json(['bus', 'status'])).code).toBe(0)
    expect(await world.must(['bus', 'stop'])).toMatchObject({ inOrder: true })
  })

  test('a stop shows how the sessions ended before its last word, and a second signal hurries it', async () => {
    await using world = new World()
    const host = await world.start()
    await world.must(['launch', 'coder'])
    const runners = processesOf(world.root).filter((pid) => readFileSync(`/proc/${String(pid)}/cmdline`, 'utf8').includes('runner.cjs'))
    expect(runners.length).toBeGreaterThan(0)
    // they do not hear SIGTERM: not hurried, the stop takes its ten seconds
    for (const pid of runners) process.kill(pid, 'SIGSTOP')
    const from = performance.now()
    process.kill(host.pid, 'SIGINT')
    await until('it is stopping', () => host.output().includes('stopping'))
    process.kill(host.pid, 'SIGINT')
    expect(await host.ended).toEqual({ code: 0, signal: null })
    expect(performance.now() - from).toBeLessThan(9000)
    const lines = host.output().split('\n')
    const at = (pattern: RegExp): number => lines.findIndex((line) => pattern.test(line))
    expect(at(/coder.* ended/)).toBeGreaterThan(at(/^stopping$/))
    expect(at(/^stopped; /)).toBeGreaterThan(at(/coder.* ended/))
  })
})
