import { once } from 'node:events'
import type FileSystem from 'node:fs'
import net, { type Socket } from 'node:net'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { authenticatePeer, createPeers } from '../../src/daemon/peers.ts'
import type { SessionPrincipal } from '../../src/protocol/common.ts'
import { INSIDE } from '../../src/sandbox/policy.ts'
import { type Inside, openWorld, type World } from '../sandbox/world.ts'

const kernel = vi.hoisted(() => ({ reads: 0, isStrict: false, inits: new Set<string>() }))
vi.mock('node:fs', async (original) => {
  const fs = await original<typeof FileSystem>()
  return {
    ...fs,
    readFileSync: (...args: Parameters<typeof fs.readFileSync>) => {
      kernel.reads++
      return fs.readFileSync(...args)
    },
    readlinkSync: (path: string) => {
      kernel.reads++
      if (kernel.isStrict && !kernel.inits.has(path)) throw Object.assign(new Error('EACCES'), { code: 'EACCES' })
      return fs.readlinkSync(path)
    },
  }
})

let worlds: World[]
let sessions: Inside[]
let server: net.Server
let door: string
beforeEach(async () => {
  kernel.isStrict = false
  worlds = [await openWorld(), await openWorld()]
  door = worlds[0]?.path('host/door.sock') ?? ''
  server = net.createServer().listen(door)
  await once(server, 'listening')
  sessions = []
  for (const world of worlds) {
    const sockets = ['bus', 'launch'].map((name) => ({ name: `${name}.sock`, path: name === 'bus' ? world.path('host/bus.sock') : door }))
    const inside = await world.start({ sockets })
    sessions.push(inside)
    kernel.inits.add(`/proc/${String(inside.session.init.pid)}/ns/pid`)
  }
})
afterEach(async () => {
  server.close()
  for (const world of worlds) await world[Symbol.asyncDispose]()
})

const RUNS = ['r1', 'r2']
const createRunPeers = (runs: readonly string[] = RUNS) =>
  createPeers({ runs: () => runs, initOf: (run) => sessions[RUNS.indexOf(run)]?.session.init.pid ?? null })

/** The socket at our end of a connection that `dial` makes. */
async function accept(dial: () => unknown): Promise<Socket> {
  const accepted = once(server, 'connection') as Promise<[Socket]>
  await dial()
  const [socket] = await accepted
  return socket.on('error', () => undefined).on('close', () => undefined)
}

const DOOR = '/run/mosaic/launch.sock'
/** A Python program that connects, as the last of a chain of so many processes. */
const chain = (depth: number, connect = CONNECT): string => `
import os, socket, time
for _ in range(${String(depth)}):
    if os.fork(): time.sleep(600)
${connect}
`
const CONNECT = `s = socket.socket(socket.AF_UNIX); s.connect('${DOOR}'); time.sleep(600)`
/** By the runner's Node: who runs it may not be looked into. */
const CONNECT_HIDDEN = `os.execv('${INSIDE.runnerNode}', ['node', '-e', 'net.connect("${DOOR}")'])`
const play = (inside: Inside | undefined, program: string) =>
  inside?.run(`childProcess.spawn('/usr/bin/python3', ['-I', '-c', ${JSON.stringify(program)}], { stdio: 'ignore' }).unref()`)

test('a runner and any process below it, one that nobody beside it may look into too, are of their own run alone', async () => {
  const { runOf } = createRunPeers()
  for (const [n, inside] of sessions.entries()) {
    const run = RUNS[n] ?? ''
    const sockets = [
      await accept(() => inside.run(`return void net.connect('${DOOR}')`)),
      await accept(() => play(inside, chain(5))),
      await accept(() => play(inside, chain(5, CONNECT_HIDDEN))),
    ]
    expect(sockets.map(runOf)).toEqual([run, run, run])
    expect(sockets.map(createRunPeers(RUNS.filter((other) => other !== run)).runOf)).toEqual([null, null, null])
  }
  expect(runOf(await accept(() => net.connect(door)))).toBeNull()
})

test('where the machine lets nobody look at what lives in a sandbox, the runner is told from all others', async () => {
  const { runOf } = createRunPeers()
  const runner = await accept(() => sessions[0]?.run(`return void net.connect('${DOOR}')`))
  const deep = await accept(() => play(sessions[0], chain(1)))
  expect([runner, deep].map(runOf)).toEqual(['r1', 'r1']) // the control
  kernel.isStrict = true
  expect([runner, deep].map(runOf)).toEqual(['r1', null])
  expect(createRunPeers(['r2']).runOf(runner)).toBeNull()
})

test('a capability is worth nothing in another sandbox, outside of one, and when its run has ended', async () => {
  const find = (cap: string): SessionPrincipal | null => (cap === 'cap' ? ({ run: 'r1' } as SessionPrincipal) : null)
  const is = (cap: string, socket: Socket, runs = RUNS): string | undefined => authenticatePeer({ peers: createRunPeers(runs), find }, cap, socket)?.run
  const own = await accept(() => sessions[0]?.run(`return void net.connect('${DOOR}')`))
  expect(is('cap', own)).toBe('r1')
  expect(is('other', own)).toBeUndefined()
  expect(is('cap', own, ['r2'])).toBeUndefined()
  expect(is('cap', await accept(() => sessions[1]?.run(`return void net.connect('${DOOR}')`)))).toBeUndefined()
  expect(is('cap', await accept(() => net.connect(door)))).toBeUndefined()
})

test('a peer costs the same however deep it is, and whether it hides', async () => {
  const { runOf } = createRunPeers()
  const costOf = (socket: Socket): number => {
    runOf(socket)
    kernel.reads = 0
    runOf(socket)
    return kernel.reads
  }
  for (const connect of [CONNECT, CONNECT_HIDDEN]) expect(costOf(await accept(() => play(sessions[1], chain(100, connect))))).toBeLessThanOrEqual(2)
})
