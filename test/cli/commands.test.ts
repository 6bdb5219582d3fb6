import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { AppError } from '../../src/core/errors.ts'
import { CONTROL_METHODS } from '../../src/protocol/control.ts'
import { type Answer, type CallServer, openCallServer } from '../client/call-server.ts'
import { AT, messageRow, OID, onePage, reviewRow, RUN, runRow, taskRow } from './rows.ts'
import { type CliRun, runCli } from './run-cli.ts'

const servers: CallServer[] = []
afterEach(async () => {
  for (const server of servers.splice(0)) await server[Symbol.asyncDispose]()
})

async function serve(methods: Readonly<Record<string, Answer>>): Promise<CallServer> {
  const server = await openCallServer(methods)
  servers.push(server)
  return server
}

const isMethod = (name: string): name is keyof typeof CONTROL_METHODS => Object.hasOwn(CONTROL_METHODS, name)

/** What the host was asked, hello apart; everything of it must be what the real host's schemas take. */
function asked(server: CallServer): (readonly [string, unknown])[] {
  const calls = server.calls.slice(1).filter(({ method }) => method !== 'hello')
  for (const { method, params } of calls) {
    if (!isMethod(method)) throw new Error(`the control socket has no ${method}`)
    CONTROL_METHODS[method].parse(params)
  }
  return calls.map(({ method, params }) => [method, params])
}

async function run(
  methods: Readonly<Record<string, Answer>>,
  args: readonly string[],
  options: Parameters<typeof runCli>[2] = {},
): Promise<CliRun & { readonly asked: ReturnType<typeof asked> }> {
  const server = await serve(methods)
  const result = await runCli(server.dataRoot, args, options)
  return { ...result, asked: asked(server) }
}

const LAUNCHED = { run: RUN, instance: 'coder', harness: 'script', model: 'claude-sonnet-5-5', env: 'created' }

test.each([
  [['launch', 'coder'], { instance: 'coder' }],
  [['launch', 'coder', '--task', 't-1', '--fresh', '--discard'], { instance: 'coder', task: 't-1', mode: 'fresh', discard: true }],
  [['launch', 'coder', '--continue', RUN], { instance: 'coder', mode: 'continue', run: RUN }],
  [['launch', 'coder', '--request', '-'], { instance: 'coder', request: 'typed' }],
  [['launch', 'coder', '--dry-run'], { instance: 'coder', dryRun: true }],
])('%j asks for %j', async (args, params) => {
  const result = await run({ launch: () => LAUNCHED }, args, { input: 'typed\n' })
  expect([result.code, result.asked]).toEqual([0, [['launch', params]]])
})

test('launch prints the run; --wait waits for its end, and only a stopped one is a success', async () => {
  expect((await run({ launch: () => LAUNCHED }, ['launch', 'coder', '-q'])).stdout).toBe(`${RUN}\n`)
  const ends = [runRow(), runRow({ state: 'ended', live: false, reason: 'failed', exitCode: 3, endedAt: AT })]
  const failed = await run({ launch: () => LAUNCHED, wait: () => ends.shift() }, ['launch', 'coder', '--wait', '--json'])
  expect([failed.code, failed.json]).toEqual([1, { ok: true, data: { ...LAUNCHED, reason: 'failed', exitCode: 3, signal: null, endedAt: AT } }])
})

test('stop takes a run, the beginning of one, an instance or all', async () => {
  const methods = { stop: () => [runRow()], agents: () => [{ instance: 'rea' }, { instance: 'coder' }] }
  const of = async (...args: string[]): Promise<unknown> => (await run(methods, ['stop', ...args])).asked.at(-1)
  expect(await of(RUN)).toEqual(['stop', { run: RUN }])
  expect(await of('r0123')).toEqual(['stop', { run: 'r0123' }])
  expect(await of('rea')).toEqual(['stop', { instance: 'rea' }])
  expect(await of('coder', '--timeout', '1s')).toEqual(['stop', { instance: 'coder', timeoutMs: 1000 }])
  expect(await of('--all')).toEqual(['stop', { all: true }])
})

test('stop --dry-run stops nothing', async () => {
  const methods = { stop: () => [runRow(), runRow({ run: 'r999999999999', instance: 'pm' })] }
  const all = await run(methods, ['stop', '--all', '--dry-run'])
  expect([all.code, all.stdout]).toEqual([0, `would stop ${RUN} (coder)\nwould stop r999999999999 (pm)\n`])
  expect(all.asked).toEqual([['stop', { all: true, dryRun: true }]])
  const killed = await run({ kill: () => runRow() }, ['kill', RUN, '--dry-run'])
  expect([killed.stdout, killed.asked]).toEqual([`would kill ${RUN} (coder)\n`, [['kill', { run: RUN, dryRun: true }]]])
  const host = { status: () => ({ pid: 7, business: 'acme' }), ps: onePage([runRow()]) }
  const whole = await run(host, ['bus', 'stop', '--dry-run'])
  expect([whole.code, whole.stdout]).toEqual([0, `would stop the bus host of acme (pid 7)\nwould end ${RUN} (coder)\n`])
  expect(whole.asked.map(([method]) => method)).toEqual(['status', 'ps'])
})

test('wait asks until the run has ended, or its time is over', async () => {
  const rows = [runRow(), runRow({ state: 'stopping' }), runRow({ state: 'ended', live: false, reason: 'stopped', exitCode: 0 })]
  const done = await run({ wait: () => rows.shift() }, ['wait', RUN])
  expect([done.code, done.stdout, done.asked.length]).toEqual([0, `${RUN} (coder) ended: stopped 0\n`, 3])
  const late = await run({ wait: () => runRow() }, ['wait', RUN, '--timeout', '0s', '--json'])
  expect([late.code, late.json?.error?.code]).toEqual([124, 'timeout'])
})

test('pause, resume and kill name what they act on', async () => {
  expect((await run({ pause: () => ({}) }, ['pause', 'coder'])).asked).toEqual([['pause', { instance: 'coder' }]])
  expect((await run({ resume: () => ({}) }, ['resume', 'coder'])).asked).toEqual([['resume', { instance: 'coder' }]])
  expect((await run({ kill: () => runRow() }, ['kill', 'r01'])).stdout).toBe(`killed ${RUN} (coder)\n`)
})

const RESULT = messageRow({ id: 'm-2', class: 'RESULT', body: 'forty-two\x1b[1m', in_reply_to: 'm-1' })

test('ask sends first and waits then; the RESULT is escaped for people and whole for programs', async () => {
  const ask: Answer = ({ resume }) => ({ id: 'm-1', live: true, result: resume === undefined ? null : RESULT })
  const plain = await run({ ask }, ['ask', 'coder', '-'], { input: 'what?' })
  expect([plain.code, plain.stdout, plain.stderr]).toEqual([0, 'forty-two\\x1b[1m\n', ''])
  expect(plain.asked).toEqual([
    ['ask', { instance: 'coder', body: 'what?', waitMs: 0 }],
    ['ask', { resume: 'm-1', waitMs: 30_000 }],
  ])
  expect((await run({ ask }, ['ask', 'coder', 'x', '--json'])).json).toEqual({ ok: true, data: { id: 'm-1', result: RESULT } })
  expect((await run({ ask }, ['ask', '--resume', 'm-1'])).asked).toEqual([['ask', { resume: 'm-1', waitMs: 0 }]])
})

test('ask: a RESULT that says failed is printed, noted, and no failure of ask', async () => {
  const ask: Answer = () => ({ id: 'm-1', live: true, result: { ...RESULT, failed: true } })
  const failed = await run({ ask }, ['ask', 'coder', 'x'])
  expect([failed.code, failed.stdout, failed.stderr]).toEqual([0, 'forty-two\\x1b[1m\n', 'coder says that it failed\n'])
  const again = await run({ ask }, ['ask', '--resume', 'm-1', '--json'])
  expect([again.code, again.json]).toMatchObject([0, { ok: true, data: { id: 'm-1', result: { failed: true } } }])
})

test('ask: nobody live is said at once; the time over is 124 with the id', async () => {
  const ask: Answer = () => ({ id: 'm-1', live: false, result: null })
  const plain = await run({ ask }, ['ask', 'coder', 'x', '--timeout', '0s'])
  expect([plain.code, plain.stdout]).toEqual([124, 'm-1\n'])
  expect(plain.stderr).toMatch(/^no session of coder lives.*\nerror: no RESULT for m-1 yet\nhint: mosaic ask --resume m-1\n$/)
  const json = await run({ ask }, ['ask', 'coder', 'x', '--timeout', '0s', '--json'])
  expect([json.code, json.json?.error]).toMatchObject([124, { code: 'timeout', data: { id: 'm-1' } }])
})

test('inbox acknowledges the NOTEs and RESULTs that it has shown, and no REQUEST', async () => {
  const rows = [
    messageRow({ id: 'm1' }),
    messageRow({ id: 'm2', class: 'REQUEST' }),
    messageRow({ id: 'm3', class: 'RESULT', state: 'delivered' }),
    messageRow({ id: 'm4', state: 'acknowledged' }),
  ]
  const result = await run({ inbox: onePage(rows), 'message.ack': () => ({}) }, ['inbox', '-q'])
  expect(result.stdout).toBe('m1\nm2\nm3\nm4\n')
  expect(result.asked.at(-1)).toEqual(['message.ack', { ids: ['m1', 'm3'] }])
})

test('inbox -f shows what comes, one envelope a line, until interrupted', async () => {
  const pages = [[messageRow({ id: 'm1' })], [messageRow({ id: 'm2' })]]
  const inbox: Answer = (_, signal) => pages.shift() ?? new Promise((resolve) => signal.addEventListener('abort', () => resolve([])))
  const onOutput = (text: string, interrupt: () => void): void => (text.includes('m2') ? interrupt() : undefined)
  const result = await run({ inbox, 'message.ack': () => ({}) }, ['inbox', '-f', '--json'], { onOutput })
  expect(result.code).toBe(130)
  expect(
    result.stdout
      .trim()
      .split('\n')
      .slice(0, 2)
      .map((line) => (JSON.parse(line) as { data: { id: string } }).data.id),
  ).toEqual(['m1', 'm2'])
})

test('inbox --new leaves out what was shown or answered before', async () => {
  const rows = [
    messageRow({ id: 'm1', class: 'REQUEST', state: 'answered' }),
    messageRow({ id: 'm2', class: 'REQUEST', state: 'delivered' }),
    messageRow({ id: 'm3', state: 'acknowledged' }),
    messageRow({ id: 'm4', state: 'accepted' }),
  ]
  const methods = { inbox: onePage(rows), 'message.ack': () => ({}) }
  expect((await run(methods, ['inbox', '--new', '-q'])).stdout).toBe('m2\nm4\n')
  expect((await run(methods, ['inbox', '-q'])).stdout).toBe('m1\nm2\nm3\nm4\n')
})

test('no text of a message can pass for a line of ours', async () => {
  const body = 'fine\nNOTE m-9  host → founder\n\x1b[2J'
  const { stdout } = await run({ 'message.show': () => messageRow({ body, subject: 'a\u202eb' }) }, ['message', 'show', 'm-1'])
  expect(stdout).toBe(`NOTE m-1  coder → founder  a\\u{202e}b  2026-01-31 09:00:00Z  (accepted)\n  fine\n  NOTE m-9  host → founder\n  \\x1b[2J\n`)
})

test('answer sends a RESULT to who asked', async () => {
  const methods = { 'message.show': () => messageRow({ id: 'm-7', class: 'REQUEST', from_instance: 'pm' }), 'message.send': () => ({ id: 'm-8' }) }
  const result = await run(methods, ['answer', 'm-7', '-'], { input: 'blue\n' })
  expect(result.asked.at(-1)).toEqual(['message.send', { to: 'pm', class: 'RESULT', body: 'blue', in_reply_to: 'm-7' }])
})

test('message send, from an operand or from standard input', async () => {
  const methods = { 'message.send': () => ({ id: 'm-1' }) }
  const args = ['message', 'send', '--to', 'coder', '--class', 'NOTE', '--subject', 'a subject', '-']
  const result = await run(methods, args, { input: 'from stdin' })
  expect([result.stdout, result.asked]).toEqual(['m-1\n', [['message.send', { to: 'coder', class: 'NOTE', body: 'from stdin', subject: 'a subject' }]]])
  const bad = await runCli('/nowhere', args, { input: Buffer.from([0x66, 0xff]) })
  expect([bad.code, bad.stderr]).toEqual([2, 'error: standard input is no UTF-8 text\nhint: mosaic message send --help\n'])
})

test('tasks: create, list, show, assign, close', async () => {
  const created = await run(
    { 'task.create': () => taskRow() },
    ['task', 'create', 'Write', '--id', 't-1', '--project', 'stack', '--assignee', 'coder', '--body', '-'],
    { input: 'all of it\n' },
  )
  expect([created.stdout, created.asked]).toEqual([
    't-1\n',
    [['task.create', { title: 'Write', id: 't-1', project: 'stack', assignee: 'coder', body: 'all of it' }]],
  ])
  expect((await run({ 'task.list': onePage([taskRow()]) }, ['task', 'list', '--state', 'open'])).stdout).toBe('t-1\topen\t-\tstack\t-\t-\tWrite the thing\n')
  expect((await run({ 'task.show': () => taskRow({ body: 'text' }) }, ['task', 'show', 't-1'])).stdout).toMatch(/^id\tt-1\n[^]*\n\n {2}text\n$/)
  expect((await run({ 'task.assign': () => taskRow({ assignee: 'coder' }) }, ['task', 'assign', 't-1', 'coder'])).asked).toEqual([
    ['task.assign', { task: 't-1', instance: 'coder' }],
  ])
  const closed = await run({ 'task.close': () => taskRow({ state: 'closed' }) }, ['task', 'close', 't-1', '--override', '--reason', 'obsolete'])
  expect(closed.asked).toEqual([['task.close', { task: 't-1', override: true, reason: 'obsolete' }]])
})

test('a verdict is for the commit of the request, or for the one that was named', async () => {
  const methods = { 'review.show': () => reviewRow(), 'review.verdict': () => reviewRow({ state: 'approved', verdict: 'approve' }) }
  const of = async (...args: string[]): Promise<unknown> => (await run(methods, ['review', ...args])).asked.at(-1)
  expect(await of('approve', 'q-1')).toEqual(['review.verdict', { request: 'q-1', commit: OID, verdict: 'approve', note: '' }])
  expect(await of('reject', 'q-1', '--commit', 'aaaaaaa', '--note', 'no')).toEqual([
    'review.verdict',
    { request: 'q-1', commit: OID, verdict: 'reject', note: 'no' },
  ])
  expect(await of('approve', 'q-1', '--commit', 'b'.repeat(40))).toEqual([
    'review.verdict',
    { request: 'q-1', commit: 'b'.repeat(40), verdict: 'approve', note: '' },
  ])
})

test('push diff is what git prints, escaped', async () => {
  const { stdout } = await run({ 'push.diff': () => ({ push: 'p-1', acting: [], diff: '+work\n+\x1b[8mhidden\n' }) }, ['push', 'diff', 'p-1'])
  expect(stdout).toBe('+work\n+\\x1b[8mhidden\n')
})

const record = (seq: number): object => ({
  seq,
  at: AT,
  kind: 'session.started',
  subject: RUN,
  actor: { kind: 'host', name: 'host', run: null },
  body: {},
  hash: String(seq).repeat(64),
})

test('log and trail read page by page until one is empty', async () => {
  const trail: Answer = ({ after }) => (after === undefined ? [record(1), record(2)] : after === 2 ? [record(3)] : [])
  const result = await run({ trail }, ['trail', '--subject', RUN, '-q'])
  expect([result.stdout, result.asked]).toEqual([
    '1\n2\n3\n',
    [
      ['trail', { subject: RUN }],
      ['trail', { subject: RUN, after: 2 }],
      ['trail', { subject: RUN, after: 3 }],
    ],
  ])
  const log: Answer = ({ after }) =>
    after === undefined ? [{ seq: 4, at: AT, event: 'refused', run: null, instance: 'coder', by: 'ada', code: 'capacity-full', why: '1 of 1' }] : []
  const { stdout } = await run({ log }, ['log', '--event', 'refused', '--code', 'capacity-full'])
  expect(stdout).toBe('4\t2026-01-31 09:00:00Z\trefused\tcoder\t-\tby=ada code=capacity-full why=1 of 1\n')
})

test('trail verify: exit 1 when the chain or the head does not hold', async () => {
  const row = { ok: true, firstBad: null, records: 3, head: 'f'.repeat(64) }
  const good = await run({ 'trail.verify': () => row }, ['trail', 'verify', '--json'])
  expect([good.code, good.json]).toEqual([0, { ok: true, data: row }])
  const bad = await run({ 'trail.verify': () => ({ ...row, ok: false, firstBad: 2 }) }, ['trail', 'verify', '--head', '0'.repeat(64)])
  expect([bad.code, bad.stdout]).toEqual([1, `the trail is broken at 2: 3 records, head ${row.head}\n`])
  const refuse = (): never => {
    throw new AppError('trail-mismatch', 'no such head')
  }
  expect((await run({ 'trail.verify': refuse }, ['trail', 'verify', '--head', '0'])).code).toBe(1)
})

test('trail export writes a new file and never over one', async () => {
  const root = mkdtempSync('/tmp/mc-')
  const file = join(root, 'trail.jsonl')
  const trail: Answer = ({ after }) => (after === undefined ? [record(1), record(2)] : [])
  expect((await run({ trail }, ['trail', 'export', file, '--json'])).json).toEqual({ ok: true, data: { file, records: 2, head: '2'.repeat(64) } })
  const written = readFileSync(file, 'utf8')
  expect(written).toBe(`${JSON.stringify(record(1))}\n${JSON.stringify(record(2))}\n`)
  expect((await run({ trail }, ['trail', 'export', file])).code).toBe(3)
  expect(readFileSync(file, 'utf8')).toBe(written)
  rmSync(root, { recursive: true })
})

const event = (at: string, text: string, cursor: string): object => ({ at, kind: 'launch', text, run: RUN, instance: 'coder', task: null, ref: null, cursor })

test('timeline -f shows each row once, asking for what follows the last', async () => {
  const pages: Readonly<Record<string, readonly object[]>> = {
    start: [event(AT, 'one', '1.0')],
    '1.0': [event(AT, 'two', '2.0')],
    '2.0': [],
  }
  let grown = false
  const methods: Readonly<Record<string, Answer>> = {
    timeline: ({ after = 'start' }) => (grown && after === '2.0' ? [event('2026-01-31T09:00:01.000Z', 'three', '2.1')] : (pages[String(after)] ?? [])),
    'trail.head': () => ({ records: 1, head: '' }),
    trail: (_, signal) => {
      if (grown) return new Promise((resolve) => signal.addEventListener('abort', () => resolve([])))
      grown = true
      return [record(2)]
    },
  }
  const onOutput = (text: string, interrupt: () => void): void => (text.includes('three') ? interrupt() : undefined)
  const result = await run(methods, ['timeline', '-f'], { onOutput })
  expect(result.code).toBe(130)
  expect(result.stdout.match(/one|two|three/g)).toEqual(['one', 'two', 'three'])
})

test('timeline --since is a moment, kept over all pages', async () => {
  const result = await run({ timeline: ({ after }) => (after === undefined ? [event(AT, 'one', '1.0')] : []) }, [
    'timeline',
    '--since',
    '2026-01-31T00:00:00Z',
    '--task',
    't-1',
  ])
  const since = { sinceMs: Date.UTC(2026, 0, 31), task: 't-1' }
  expect(result.asked).toEqual([
    ['timeline', since],
    ['timeline', { ...since, after: '1.0' }],
  ])
})

const ENV = {
  env: 'coder',
  business: 'acme',
  instance: 'coder',
  task: null,
  ownerRun: RUN,
  held: true,
  holderRun: RUN,
  sizeBytes: 2048,
  problem: null,
  unsaved: [{ project: 'stack', reason: 'dirty' }],
  envRoot: '/d/envs/acme/coder',
}

test('env list, du, release and gc', async () => {
  const methods = {
    'env.list': () => [ENV],
    'env.release': () => ({ env: 'coder', path: '/d/x' }),
    gc: () => [{ kind: 'run', path: '/d/r', sizeBytes: 1024 }],
  }
  expect((await run(methods, ['env', 'list'])).stdout).toBe(`coder\tcoder\t-\t${RUN}\t${RUN}\t2.0K\tstack (dirty)\n`)
  expect((await run(methods, ['env', 'du'])).stdout).toBe('2.0K\tcoder\t/d/envs/acme/coder\n2.0K\ttotal\t-\n')
  const wouldRelease = await run(methods, ['env', 'release', 'coder', '--dry-run'])
  expect([wouldRelease.stdout, wouldRelease.asked]).toEqual(['would move the env root coder to /d/x\n', [['env.release', { env: 'coder', dryRun: true }]]])
  expect((await run(methods, ['env', 'release', 'coder'])).asked).toEqual([['env.release', { env: 'coder' }]])
  expect((await run(methods, ['gc', '--dry-run'])).asked).toEqual([['gc', { apply: false }]])
  expect((await run(methods, ['gc', '--dry-run', '--apply'])).code).toBe(2)
  const dry = await run(methods, ['gc'])
  expect([dry.stdout, dry.stderr, dry.asked]).toEqual(['run\t/d/r\t1.0K\n', 'nothing was removed; mosaic gc --apply does it\n', [['gc', { apply: false }]]])
  expect((await run(methods, ['gc', '--apply'])).asked).toEqual([['gc', { apply: true }]])
})
