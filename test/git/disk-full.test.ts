import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { connect } from 'node:net'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { listenUnix } from '../../src/core/listen.ts'
import { silentLog } from '../../src/core/log.ts'
import type { HelperResult, RunHelper } from '../../src/core/run-helper.ts'
import { bundleFor } from '../../src/git/fetch.ts'
import { openIncoming } from '../../src/git/incoming.ts'
import type { IntakeDeps } from '../../src/git/intake.ts'
import { createFetchPlaces } from '../../src/git/fetch-places.ts'
import type { GitServerDeps } from '../../src/git/exchange.ts'
import { serveGit } from '../../src/git/server.ts'
import type { SessionPrincipal } from '../../src/protocol/common.ts'
import { snapshot } from '../workspace/world.ts'
import { type GitWorld, makeGitWorld } from './world.ts'

let w: GitWorld
beforeEach(async () => {
  w = await makeGitWorld()
})
afterEach(() => w.close())

const CAP = 'c'.repeat(64)
const MIB = 1024 ** 2
const systemError = (code: string): Error => Object.assign(new Error(`${code}: write`), { code })
/** Every file; git leaves an empty directory where a ref was to be. */
const objects = (): unknown => Object.entries(snapshot(w.repository)).filter(([, what]) => !what.startsWith('40'))

/** A commit with a file that no compression makes smaller. */
function large(): { readonly commit: string; readonly bytes: Buffer } {
  const blob = w.forge.object('blob', randomBytes(400_000))
  const commit = w.forge.commit(w.forge.tree([{ mode: '100644', name: 'large', oid: blob }]), w.base)
  return { commit, bytes: w.forge.honest(commit, w.base) }
}

/** The nth helper from now on, and those after it, run under that limit of the kernel, or end with these words. */
const from =
  (nth: number, change: (request: Parameters<RunHelper>[0]) => Promise<HelperResult>): RunHelper =>
  (request) =>
    nth-- > 1 ? w.runHelper(request) : change(request)
const limited = (bytes: number) => (request: Parameters<RunHelper>[0]) =>
  w.runHelper({ ...request, command: ['/usr/bin/prlimit', `--fsize=${String(bytes)}`, '--', ...request.command] })
const saying = (words: string, exitCode: number) => (): Promise<HelperResult> =>
  Promise.resolve({ exitCode, signal: null, timedOut: false, stdout: Buffer.alloc(0), stderr: `fatal: write error: ${words}\n` })

const failing = (code: string) => (): Promise<never> => Promise.reject(systemError(code))

const CASES: readonly (readonly [string, () => Partial<IntakeDeps>])[] = [
  ['the kernel limits files while the objects are unpacked', () => ({ runHelper: from(1, limited(100_000)) })],
  ['the kernel limits files while the ref is moved', () => ({ advance: failing('EFBIG') })],
  ['the disk is full while the objects are unpacked', () => ({ runHelper: from(1, saying('No space left on device', 12)) })],
  ['a quota is used up while the ref is moved', () => ({ advance: failing('EDQUOT') })],
]
test.each(CASES)('a push is disk-full, and leaves nothing, when %s', async (_, intake) => {
  const { commit, bytes } = large()
  const before = objects()
  await expect(w.push('t-1', bytes, commit, { intake: intake() })).rejects.toMatchObject({ code: 'disk-full', hint: 'mosaic gc' })
  expect(objects()).toEqual(before)
  expect(readdirSync(join(w.gitRoot, '.incoming'))).toEqual([])
  expect(await w.push('t-1', bytes, commit, { intake: { runHelper: from(1, limited(2 * MIB)) } })).toMatchObject({ commit }) // the control
})

test('a broken pack is bundle-invalid, as ever', async () => {
  const { commit, bytes } = large()
  await expect(w.push('t-1', bytes.subarray(0, bytes.length - 25), commit)).rejects.toMatchObject({ code: 'bundle-invalid' })
})

test('a bundle that does not fit is disk-full', async () => {
  const { commit, bytes } = large()
  await w.push('t-1', bytes, commit)
  const get = async (runHelper: RunHelper): Promise<number> => {
    await using incoming = await openIncoming(w.gitRoot)
    const request = { business: 'acme', project: 'stack', tasks: ['t-1'], have: [], directory: incoming.path }
    return (await bundleFor({ ...w.intake, runHelper }, request)).sizeBytes
  }
  await expect(get(from(1, limited(100_000)))).rejects.toMatchObject({ code: 'disk-full' })
  expect(await get(from(1, limited(2 * MIB)))).toBeGreaterThan(400_000)
})

const PRINCIPAL: SessionPrincipal = { kind: 'session', business: 'acme', role: 'coder', instance: 'coder', run: 'r000000000001', grants: new Set() }

/** The reply of the git socket to one push. */
async function reply(size: number, bytes: Buffer, commit: string, more: Partial<GitServerDeps>): Promise<unknown> {
  const ports: GitServerDeps['ports'] = {
    authenticate: () => PRINCIPAL,
    beginPush: () => undefined,
    finishPush: () => Promise.resolve('p1'),
    fetchable: () => Promise.resolve([]),
    syncMain: () => Promise.resolve(),
  }
  const freeBytes = (): Promise<number> => Promise.resolve(2 ** 40)
  const deps: GitServerDeps = {
    ...w.intake,
    limits: () => ({ ...w.intake.limits(), pushBytes: 100 * MIB }),
    ports,
    freeBytes,
    fetches: createFetchPlaces(),
    log: silentLog,
    ...more,
  }
  const served: Promise<void>[] = []
  await using _listener = await listenUnix({ maxConnections: 4, onConnection: (socket) => served.push(serveGit(deps, socket)) }, w.path('git.sock'))
  const socket = connect({ path: w.path('git.sock'), allowHalfOpen: true })
  socket.on('error', () => undefined)
  socket.write(`${JSON.stringify({ cap: CAP, op: 'push', project: 'stack', task: 't-1', commit, size })}\n`)
  socket.write(bytes)
  const [answer] = (await once(socket, 'data')) as [Buffer]
  socket.destroy()
  await Promise.all(served)
  return JSON.parse(answer.toString('utf8'))
}

test('a push that would eat the reserve is refused before its bytes are taken', async () => {
  const { commit, bytes } = large()
  const asked = (freeBytes: number, size = bytes.length): Promise<unknown> => reply(size, bytes, commit, { freeBytes: () => Promise.resolve(freeBytes) })
  expect(await asked(512 * MIB + bytes.length - 1)).toEqual({
    ok: false,
    error: 'disk-full',
    why: '512 MiB are free on the disk of the bus host, and this push needs 512 MiB',
  })
  expect(await asked(600 * MIB, 99 * MIB)).toMatchObject({ error: 'disk-full', why: expect.stringMatching(/^600 MiB .* 611 MiB$/) as string })
  expect(await asked(512 * MIB + bytes.length)).toMatchObject({ ok: true })
})

test.each(['ENOSPC', 'EDQUOT', 'EFBIG'])('%s anywhere in a request is disk-full with a why; another error stays internal', async (code) => {
  const { commit, bytes } = large()
  const refusing = (error: Error): Partial<GitServerDeps> => ({ locks: { withLock: () => Promise.reject(error) } })
  expect(await reply(bytes.length, bytes, commit, refusing(systemError(code)))).toEqual({
    ok: false,
    error: 'disk-full',
    why: 'the request cannot be served: no space is left on the disk of the bus host',
  })
  expect(await reply(bytes.length, bytes, commit, refusing(systemError('EIO')))).toEqual({ ok: false, error: 'internal' })
})
