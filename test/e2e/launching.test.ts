import { spawnSync } from 'node:child_process'
import { existsSync, lstatSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { connect } from 'node:net'
import { once } from 'node:events'
import { describe, expect, test } from 'vitest'
import { AppError } from '../../src/core/errors.ts'
import { heldLocks } from '../helpers/judge.ts'
import { toBusiness } from '../helpers/seats.ts'
import { processesOf, until, World } from '../helpers/world.ts'

const codeOf = (error: unknown): string => (error instanceof AppError ? error.code : String(error))
const namesIn = (dir: string): string[] => (existsSync(dir) ? readdirSync(dir) : [])
const launchesOf = (world: World): string[] => namesIn(join(world.data, 'launches', 'acme'))
const envRootsOf = (world: World): string[] => namesIn(join(world.data, 'envs', 'acme'))

describe.concurrent('many launches at once', () => {
  test('of one instance: one session, and 49 refusals that leave nothing', async () => {
    await using world = new World()
    await world.start()
    const founder = await world.founder()
    const answers = await Promise.all(Array.from({ length: 50 }, () => founder.launch('coder').then(() => 'ok', codeOf)))
    expect(answers.filter((answer) => answer === 'ok')).toHaveLength(1)
    expect(answers.filter((answer) => answer === 'instance-running')).toHaveLength(49)
    expect(await founder.log({ event: 'refused' })).toHaveLength(49)
    expect(launchesOf(world)).toHaveLength(1)
    expect(await founder.ask('coder', 'SAY alone')).toBe('alone')
  })

  test('of a family: as many as it has room for, whoever races; then one for each that ends', async () => {
    await using world = new World()
    const names = ['a', 'b', 'c', 'd', 'e', 'f']
    world.business = toBusiness(Object.fromEntries(names.map((name) => [name, {}])), { max: 3 })
    world.configure()
    await world.start()
    const founder = await world.founder()
    const race = (): Promise<string[]> => Promise.all(names.map((name) => founder.launch(name).then(() => 'ok', codeOf)))
    const answers = await race()
    expect(answers.toSorted()).toEqual(['capacity-full', 'capacity-full', 'capacity-full', 'ok', 'ok', 'ok'])
    const [first] = await founder.ps()
    await founder.stop(first?.instance ?? '')
    expect((await race()).toSorted()).toEqual(['capacity-full', 'capacity-full', 'capacity-full', 'instance-running', 'instance-running', 'ok'])
    expect(await founder.status()).toMatchObject({ sessions: 3, capacity: { sonnet: { max: 3, live: 3 } } })
  })

  test('whose clients are gone before the answer are there all the same, whole', async () => {
    await using world = new World()
    const names = ['a', 'b', 'c', 'd']
    world.business = toBusiness(Object.fromEntries(names.map((name) => [name, {}])))
    world.configure()
    await world.start()
    for (const instance of names) {
      const socket = connect(join(world.data, 'bus-host', 'control.sock'))
      const frames = [
        { id: 0, method: 'hello', params: { protocol: 1, version: 'gone' } },
        { id: 1, method: 'launch', params: { instance } },
      ]
      socket.write(frames.map((frame) => `${JSON.stringify(frame)}\n`).join(''))
      await once(socket, 'data')
      socket.destroy()
    }
    const founder = await world.founder()
    for (const instance of names) expect(await founder.ask(instance, `SAY ${instance}`)).toBe(instance)
    expect((await founder.log()).map((row) => row.event)).toEqual(['launch', 'launch', 'launch', 'launch'])
  })
})

/** A project root that blocks whoever reads it: a preparation that never ends. */
function blockRoot(world: World): () => void {
  const fifo = join(world.root, 'stack', '.git', 'packed-refs')
  expect(spawnSync('mkfifo', [fifo]).status).toBe(0)
  return () => rmSync(fifo)
}

describe.concurrent('a launch that is cut off while it prepares', () => {
  test('by the death of its host is undone by the next', async () => {
    await using world = new World({ project: true })
    const unblock = blockRoot(world)
    const host = await world.start()
    const founder = await world.founder()
    const launch = founder.launch('coder').catch(codeOf)
    await until('the claim is made', () => existsSync(join(world.data, 'envs', 'acme', 'coder', 'workspace')))
    await until('a helper runs', () => processesOf(join(world.root, 'stack', '.git')).length > 0)
    await host.crash()
    expect(await launch).toBe('host-not-running')
    await until('the helper died with its host', () => processesOf(world.root).length === 0)
    unblock()
    await world.start()
    const next = await world.founder()
    expect([launchesOf(world), envRootsOf(world)]).toEqual([[], []])
    expect(await next.log()).toMatchObject([{ event: 'refused', instance: 'coder', code: 'internal' }])
    expect(await next.ps()).toEqual([])
    await next.session('coder')
    expect(await next.ask('coder', 'RUN cat stack/file.txt')).toBe('one')
  })

  test('by the stop of its host is refused with host-stopping, at once', async () => {
    await using world = new World({ project: true })
    blockRoot(world)
    const host = await world.start()
    const founder = await world.founder()
    const launch = founder.launch('coder').catch(codeOf)
    await until('the claim is made', () => existsSync(join(world.data, 'envs', 'acme', 'coder', 'workspace')))
    const started = performance.now()
    expect(await host.stop()).toBe(0)
    expect(performance.now() - started).toBeLessThan(5000)
    expect(['host-stopping', 'host-not-running']).toContain(await launch)
    expect([launchesOf(world), envRootsOf(world)]).toEqual([[], []])
  })

  test('by its deadline costs that one deadline; the next works at once', async () => {
    await using world = new World({ project: true })
    world.system.limits = { prepareTimeout: '4s' }
    world.configure()
    const unblock = blockRoot(world)
    await world.start()
    const founder = await world.founder()
    expect(await founder.launch('coder').catch(codeOf)).toBe('prepare-timeout')
    expect([launchesOf(world), envRootsOf(world)]).toEqual([[], []])
    unblock()
    await founder.session('coder')
    expect(await founder.ask('coder', 'RUN cat stack/file.txt')).toBe('one')
  })
})

test('sessions outlive a host that dies hard, hold their lock, and end by themselves when no host comes', async () => {
  await using world = new World()
  world.system.limits = { brokerTries: 5, brokerRetry: '200ms' }
  world.configure()
  const host = await world.start()
  const founder = await world.founder()
  const row = await founder.session('coder')
  const inode = String(lstatSync(join(row.envRoot, 'lock')).ino)
  await host.crash()
  expect(processesOf(row.runDir)).toContain(row.pid)
  expect(heldLocks()).toContain(inode)
  await until('the session gives up', () => processesOf(world.root).length === 0)
  expect(heldLocks()).not.toContain(inode)
  expect(readFileSync(join(row.runDir, 'runner.log'), 'utf8')).toMatch(/broker unreachable after 5 tries, exiting 23/)
})
