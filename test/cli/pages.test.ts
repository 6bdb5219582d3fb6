import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { AppError } from '../../src/core/errors.ts'
import { createAnswers } from '../../src/daemon/control/methods.ts'
import type { Host } from '../../src/daemon/host.ts'
import { PAGE_BYTES } from '../../src/protocol/common.ts'
import { type Company, company, FOUNDER, OID } from '../bus/company.ts'
import { type CallServer, openCallServer } from '../client/call-server.ts'
import { starting } from '../store/scratch.ts'
import { AT } from './rows.ts'
import { type CliRun, runCli } from './run-cli.ts'

const undo: (() => unknown)[] = []
afterEach(async () => {
  for (const step of undo.splice(0).reverse()) await step()
})

interface Served {
  readonly server: CallServer
  readonly cli: (...args: string[]) => Promise<CliRun>
  readonly ids: (...args: string[]) => Promise<string[]>
}

async function served(methods: Parameters<typeof openCallServer>[0]): Promise<Served> {
  const server = await openCallServer(methods)
  undo.push(() => server[Symbol.asyncDispose]())
  const cli = (...args: string[]): Promise<CliRun> => runCli(server.dataRoot, args)
  const ids = async (...args: string[]): Promise<string[]> => (await cli(...args, '-q')).stdout.split('\n').filter((line) => line !== '')
  return { server, cli, ids }
}

/** A store and a broker behind the methods of the real control socket; of the host only what these verbs ask. */
async function hostOf({ store, broker }: Company): Promise<Served & { readonly largest: () => number }> {
  const parts = {
    store,
    broker,
    deps: { config: { business: () => ({ id: 'acme', instances: new Map() }), current: () => ({ system: { founder: 'ada' } }) } },
    turns: { isPaused: () => false, waitingUntil: () => null },
    gateway: { serves: () => false },
  }
  const answers = createAnswers({ host: parts as unknown as Host, isReady: () => true, reload: () => Promise.resolve({}), shutdown: () => undefined })
  let largest = 0
  const methods = [...answers].map(([name, answer]) => [
    name,
    async (params: object, signal: AbortSignal): Promise<unknown> => {
      const result = await answer(params, signal)
      largest = Math.max(largest, Buffer.byteLength(JSON.stringify(result)))
      return result
    },
  ])
  return { ...(await served(Object.fromEntries(methods) as Parameters<typeof openCallServer>[0])), largest: () => largest }
}

const numbered = (letter: string, count: number): string[] => Array.from({ length: count }, (_, n) => `${letter}${String(n + 1)}`)

async function withNotes(): Promise<Company> {
  const at = company()
  for (const who of [at.start('pm'), at.start('coder')])
    for (let n = 0; n < 200; n++) await at.broker.messages.send(who, { to: 'founder', class: 'NOTE', body: 'n'.repeat(2000) })
  return at
}

test('inbox shows every message once, the oldest first, and acknowledges what it has shown', async () => {
  const at = await withNotes()
  const { ids, server, largest } = await hostOf(at)
  const all = numbered('m', 400)
  expect(await ids('inbox')).toEqual(all)
  expect(server.calls.filter(({ method }) => method === 'inbox').length).toBeGreaterThan(3)
  expect(largest()).toBeLessThanOrEqual(PAGE_BYTES + 1)
  expect(all.map((id) => at.broker.messages.show(id).state).filter((state) => state !== 'acknowledged')).toEqual([])
  expect(await ids('inbox', '--new')).toEqual([])
  expect(await ids('inbox')).toEqual(all)
})

test('inbox --new shows every message that was not shown, the oldest first', async () => {
  const at = await withNotes()
  const { ids } = await hostOf(at)
  await at.broker.messages.ack(FOUNDER, ['m1', 'm250'])
  expect(await ids('inbox', '--new')).toEqual(numbered('m', 400).filter((id) => id !== 'm1' && id !== 'm250'))
  expect(await ids('inbox', '--new')).toEqual([])
})

test('inbox acknowledges nothing before it has shown it', async () => {
  const at = await withNotes()
  const { server } = await hostOf(at)
  const states: string[] = []
  await runCli(server.dataRoot, ['inbox', '-q'], { onOutput: () => void states.push(at.broker.messages.show('m400').state) })
  expect([states[0], at.broker.messages.show('m400').state]).toEqual(['accepted', 'acknowledged'])
})

test('task, push and review list, message owed: none leaves out a row', async () => {
  const at = company()
  const { broker, start } = at
  const coder = start('coder')
  for (let n = 0; n < 9; n++) await broker.tasks.create(FOUNDER, { title: 'a task', body: 'b'.repeat(60_000), assignee: 'coder' })
  for (let n = 1; n <= 1500; n++) await broker.pushes.record(coder, { project: 'stack', task: 't-1', ref: 'refs/heads/work/t-1', commit: OID(n) })
  for (let n = 1; n <= 40; n++) {
    const { request } = await broker.reviews.request(FOUNDER, { task: 't-1' })
    await broker.reviews.verdict(FOUNDER, { request, commit: OID(1500), verdict: 'reject', note: 'n'.repeat(8000) })
  }
  for (let n = 0; n < 300; n++) await broker.messages.send(FOUNDER, { to: 'reviewer', class: 'REQUEST', body: 'r' })
  const { ids, cli, largest } = await hostOf(at)
  expect(await ids('task', 'list')).toEqual(numbered('t-', 9))
  expect(await ids('push', 'list')).toEqual(numbered('p', 1500))
  expect(await ids('push', 'list', '--task', 't-2')).toEqual([])
  expect(await ids('review', 'list', '--state', 'rejected')).toEqual(numbered('q', 40))
  expect(await ids('message', 'owed')).toHaveLength(300)
  expect(largest()).toBeLessThanOrEqual(PAGE_BYTES + 1)
  const ambiguous = await cli('task', 'show', 't-', '--json')
  expect([ambiguous.code, ambiguous.json?.error]).toMatchObject([2, { code: 'task-ambiguous', data: { tasks: numbered('t-', 9) } }])
  expect((await cli('task', 'show', 't-9', '-q')).stdout).toBe('t-9\n')
})

test('ps -a shows every run, the newest first, in pages', async () => {
  const at = company()
  const runs = Array.from({ length: 1200 }, (_, n) => `r${n.toString(16).padStart(12, '0')}`)
  at.store.writeNow(() => {
    for (const run of runs) {
      at.store.sessions.insertStarting(starting(run))
      if (run !== runs[7] && run !== runs[900]) at.store.sessions.setEnded(run, { reason: 'stopped', exitCode: 0, signal: null })
    }
  })
  const { ids, server, largest } = await hostOf(at)
  expect(await ids('ps', '-a')).toEqual([...runs].reverse())
  expect(server.calls.filter(({ method }) => method === 'ps').length).toBeGreaterThan(3)
  expect(largest()).toBeLessThanOrEqual(PAGE_BYTES + 1)
  expect(await ids('ps')).toEqual([runs[7], runs[900]])
})

const record = (seq: number): object => ({
  seq,
  at: AT,
  kind: 'x.test',
  subject: 'a\u200bb',
  actor: { kind: 'host', name: 'host', run: null },
  body: {},
  hash: String(seq).repeat(64),
})

function folder(): string {
  const root = mkdtempSync('/tmp/mc-')
  undo.push(() => rmSync(root, { recursive: true }))
  return root
}

test('trail export writes each page before it asks for the next, and names the file when it is whole', async () => {
  const root = folder()
  const seen: { names: number; bytes: number }[] = []
  const look = (): void => {
    const names = readdirSync(root)
    seen.push({ names: names.length, bytes: names.reduce((sum, name) => sum + statSync(join(root, name)).size, 0) })
  }
  const { cli } = await served({
    trail: ({ after = 0 }) => {
      look()
      return Number(after) < 3 ? [record(Number(after) + 1)] : []
    },
  })
  const file = join(root, 'trail.jsonl')
  const done = await cli('trail', 'export', file, '--json')
  expect(done.json).toEqual({ ok: true, data: { file, records: 3, head: '3'.repeat(64) } })
  const lines = readFileSync(file, 'utf8').split(/(?<=\n)/)
  expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual([1, 2, 3].map(record))
  expect(lines[0]).toContain('a\\u200bb')
  const size = Buffer.byteLength(lines[0] ?? '')
  expect(seen).toEqual([0, 1, 2, 3].map((pages) => ({ names: 1, bytes: pages * size })))
  expect(readdirSync(root)).toEqual(['trail.jsonl'])
})

test('trail export that is refused on its way, or interrupted, leaves nothing behind', async () => {
  const root = folder()
  const { cli } = await served({
    trail: ({ after }) => {
      if (after !== undefined) throw new AppError('internal', 'broken')
      return [record(1)]
    },
  })
  const refused = await cli('trail', 'export', join(root, 'trail.jsonl'))
  expect([refused.code, readdirSync(root)]).toEqual([1, []])
  let interrupt = (): void => undefined
  const hanging = await openCallServer({
    trail: ({ after }, signal) => {
      if (after === undefined) return [record(1)]
      interrupt()
      return new Promise((resolve) => signal.addEventListener('abort', () => resolve([])))
    },
  })
  undo.push(() => hanging[Symbol.asyncDispose]())
  const stopped = await runCli(hanging.dataRoot, ['trail', 'export', join(root, 'trail.jsonl')], { onInterrupt: (handler) => (interrupt = handler) })
  expect([stopped.code, readdirSync(root)]).toEqual([130, []])
})
