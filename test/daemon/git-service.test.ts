import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setImmediate as turnOfTheLoop } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { listenUnix } from '../../src/core/listen.ts'
import { silentLog } from '../../src/core/log.ts'
import { createGitService, type GitService } from '../../src/daemon/git-service.ts'
import type { SessionPrincipal } from '../../src/protocol/common.ts'
import { type GitWorld, makeGitWorld } from '../git/world.ts'

const CAP = 'c'.repeat(64)
const PRINCIPAL: SessionPrincipal = { kind: 'session', business: 'acme', role: 'coder', instance: 'coder', run: 'r000000000001', grants: new Set() }
const LIMITS = { pushBytes: 1024 * 1024, pushUnpackedBytes: 1 << 26, pushObjects: 1000 }

let w: GitWorld
beforeEach(async () => {
  w = await makeGitWorld()
})
afterEach(() => w.close())

/** The service of a world in which everybody may push to t-1, and a push is written down as `record` does it. */
function openService({ limits = () => LIMITS, record = () => Promise.resolve() }: { limits?: () => typeof LIMITS; record?: () => Promise<void> }) {
  const deps = {
    log: silentLog,
    failpoint: () => undefined,
    config: { current: () => ({ system: { limits: limits() } }), business: () => ({ id: 'acme', projects: { stack: { root: w.project, branch: 'main' } } }) },
    store: { pushes: { list: () => [] }, reviews: { approvals: () => [] }, tasks: { idsIn: () => [] } },
    broker: {
      budget: { assertRoom: () => undefined },
      permits: { has: () => true },
      pushes: { check: () => Promise.resolve(), record: () => record().then(() => ({ id: 'p1' })) },
    },
    workspaces: w.deps,
    diverged: new Map(),
    stopping: new AbortController().signal,
  }
  return createGitService(deps as unknown as Parameters<typeof createGitService>[0])
}

const listen = (service: GitService) =>
  listenUnix({ maxConnections: 4, onConnection: (socket) => void service.serve(() => PRINCIPAL, socket) }, w.path('git.sock'))

function send(bytes: Buffer, commit: string): Socket {
  const socket = connect({ path: w.path('git.sock'), allowHalfOpen: true })
  socket.on('error', () => undefined)
  socket.write(`${JSON.stringify({ cap: CAP, op: 'push', project: 'stack', task: 't-1', commit, size: bytes.length })}\n`)
  socket.write(bytes)
  return socket
}

async function push(bytes: Buffer, commit: string): Promise<unknown> {
  const socket = send(bytes, commit)
  const [answer] = (await once(socket, 'data')) as [Buffer]
  socket.destroy()
  return JSON.parse(answer.toString('utf8'))
}

const work = (): readonly [Buffer, string] => {
  const commit = w.forge.commit(w.forge.git('rev-parse', `${w.base}^{tree}`), w.base)
  return [w.forge.honest(commit, w.base), commit]
}

test('a push that is being written down when the doors close is waited for', async () => {
  let begun: () => void = () => undefined
  let go: () => void = () => undefined
  const [writing, written] = [new Promise<void>((resolve) => (begun = resolve)), new Promise<void>((resolve) => (go = resolve))]
  const service = await openService({ record: () => (begun(), written) })
  const listener = await listen(service)
  const socket = send(...work())
  await writing
  await listener[Symbol.asyncDispose]()
  let settled = false
  const over = service.settled().then(() => (settled = true))
  await turnOfTheLoop()
  expect(settled).toBe(false)
  go()
  await over
  expect(settled).toBe(true)
  socket.destroy()
})

test('the limits of a push are those of its time: a reload changes them', async () => {
  let limits = { ...LIMITS, pushBytes: 10 }
  const service = await openService({ limits: () => limits })
  await using _listener = await listen(service)
  const [bytes, commit] = work()
  expect(await push(bytes, commit)).toMatchObject({ error: 'bundle-too-big', why: expect.stringContaining('bytes; at most 10') as string })
  limits = { ...LIMITS, pushObjects: 0 }
  expect(await push(bytes, commit)).toMatchObject({ error: 'bundle-too-big', why: expect.stringContaining('objects; at most 0') as string })
  limits = LIMITS
  expect(await push(bytes, commit)).toMatchObject({ ok: true })
  await service.settled()
})
