import { afterEach, expect, test } from 'vitest'
import { CODES, type ErrorCode } from '../../src/core/codes.ts'
import { AppError } from '../../src/core/errors.ts'
import { type Answer, type CallServer, openCallServer } from '../client/call-server.ts'
import { RUN, runRow } from './rows.ts'
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

const refuse =
  (code: ErrorCode, message = 'because', hint?: string): Answer =>
  () => {
    throw new AppError(code, message, hint === undefined ? {} : { hint })
  }

test.each([
  [['no-such-command']],
  [['lunch', 'coder']],
  [['launch']],
  [['launch', 'coder', 'two']],
  [['launch', 'coder', '--fresh', '--continue', RUN]],
  [['launch', 'coder', '--discard']],
  [['ps', '--no-such-option']],
  [['stop', 'coder', '--timeout', 'soon']],
  [['stop']],
  [['stop', 'coder', '--all']],
  [['task']],
  [['task', 'no-such-verb']],
  [['task', 'close', 't-1', '--override']],
  [['message', 'send', 'x']],
  [['message', 'send', '--to', 'coder', '--class', 'OTHER', 'x']],
  [['ask', 'coder']],
  [['ask', 'coder', 'x', '--resume', 'm-1']],
  [['log', 'explain', 'x']],
  [['log', 'no-such-verb']],
  [['timeline', '--since', 'yesterday']],
  [['help', 'nothing']],
  [[]],
])('usage: %j is exit 2 without a host, a hint on stderr, nothing on stdout', async (args) => {
  const plain = await runCli('/nowhere', args)
  expect([plain.code, plain.stdout]).toEqual([2, ''])
  expect(plain.stderr).toMatch(/^error: \S.*\nhint: \S.*\n$/)
  const json = await runCli('/nowhere', [...args, '--json'])
  expect([json.code, json.stderr, json.json]).toMatchObject([2, '', { ok: false, error: { code: 'usage' } }])
})

test('a slip of the pen gets a suggestion', async () => {
  expect((await runCli('/nowhere', ['lunch'])).stderr).toContain('launch')
})

test('no host: exit 10 and the way to start one, for every verb that needs it', async () => {
  for (const args of [['ps'], ['bus', 'stop'], ['bus', 'status'], ['launch', 'coder'], ['inbox'], ['task', 'list'], ['bus', 'logs']]) {
    const plain = await runCli('/tmp/mosaic-no-such-root', args)
    expect([plain.code, plain.stdout]).toEqual([10, ''])
    expect(plain.stderr).toContain('hint: mosaic bus start\n')
    const json = await runCli('/tmp/mosaic-no-such-root', ['--json', ...args])
    expect([json.code, json.json]).toMatchObject([10, { ok: false, error: { code: 'host-not-running', hint: 'mosaic bus start' } }])
  }
})

test('every code exits as the table says, in words and as an envelope', async () => {
  for (const code of Object.keys(CODES) as ErrorCode[]) {
    const server = await openCallServer({ show: refuse(code, 'the thing', 'do this') })
    const plain = await runCli(server.dataRoot, ['show', RUN])
    expect([plain.code, plain.stdout, plain.stderr]).toEqual([CODES[code].exit, '', 'error: the thing\nhint: do this\n'])
    const json = await runCli(server.dataRoot, ['show', RUN, '--json'])
    expect([json.code, json.stderr, json.json]).toEqual([CODES[code].exit, '', { ok: false, error: { code, message: 'the thing', hint: 'do this' } }])
    await server[Symbol.asyncDispose]()
  }
})

test('a refused launch exits 3 whatever its code; another refusal of the same code does not', async () => {
  const line = 'coder launch refused: not-permitted (the task is of reviewer)'
  const server = await serve({ launch: refuse('not-permitted', line), show: refuse('not-permitted', 'coder launch') })
  const plain = await runCli(server.dataRoot, ['launch', 'coder'])
  expect([plain.code, plain.stdout, plain.stderr]).toEqual([3, '', `error: ${line}\n`])
  const json = await runCli(server.dataRoot, ['launch', 'coder', '--json'])
  expect([json.code, json.json]).toEqual([3, { ok: false, error: { code: 'not-permitted', message: line, hint: null } }])
  expect((await runCli(server.dataRoot, ['show', RUN])).code).toBe(5)
})

test('success: one envelope with --json, ids with -q, a table otherwise', async () => {
  const server = await serve({ ps: () => [runRow()] })
  const of = (...more: string[]): Promise<CliRun> => runCli(server.dataRoot, ['ps', ...more])
  expect((await of('--json')).json).toEqual({ ok: true, data: [runRow()] })
  expect((await of('-q')).stdout).toBe(`${RUN}\n`)
  expect((await of()).stdout.split('\t').slice(0, 3)).toEqual([RUN, 'coder', 'running'])
  const onTerminal = await runCli(server.dataRoot, ['ps'], { terminal: true, columns: 120 })
  expect(onTerminal.stdout).toMatch(new RegExp(`^RUN +INSTANCE +STATE .*\\n${RUN} +coder +running `))
})

test('an empty list is an empty list', async () => {
  const server = await serve({ ps: () => [] })
  expect((await runCli(server.dataRoot, ['ps', '--json'])).json).toEqual({ ok: true, data: [] })
  expect((await runCli(server.dataRoot, ['ps'])).stdout).toBe('')
})

test('the words of a refusal are escaped, too', async () => {
  const server = await serve({ show: refuse('run-not-found', 'no \x1b[2Jrun') })
  expect((await runCli(server.dataRoot, ['show', 'x'])).stderr).toBe('error: no \\x1b[2Jrun\n')
})

test('a bug of ours is internal, exit 1, and MOSAIC_DEBUG shows where', async () => {
  const server = await serve({ ps: () => 'no list' })
  const plain = await runCli(server.dataRoot, ['ps'], { env: { MOSAIC_DEBUG: '1' } })
  expect([plain.code, plain.stdout]).toEqual([1, ''])
  expect(plain.stderr).toMatch(/error: mosaic failed: /)
  expect(plain.stderr).toMatch(/at .*sessions\.ts/)
})

test('every mistake of a configuration is a line with its place', async () => {
  const errors = [
    { file: '/c/system.yaml', line: 3, column: 1, path: 'nonsense', message: 'unknown key' },
    { file: '/c/businesses/acme.yaml', line: 7, column: 5, path: '', message: 'not YAML' },
  ]
  const reload = (): never => {
    throw new AppError('config-invalid', '2 mistakes', { data: { errors } })
  }
  for (const answer of [reload, () => ({ errors })]) {
    const server = await openCallServer({ reload: answer })
    const plain = await runCli(server.dataRoot, ['bus', 'reload'])
    expect([plain.code, plain.stdout]).toEqual([3, ''])
    expect(plain.stderr).toContain('  /c/system.yaml:3:1: nonsense: unknown key\n  /c/businesses/acme.yaml:7:5: not YAML\n')
    const json = await runCli(server.dataRoot, ['bus', 'reload', '--json'])
    expect([json.code, json.json]).toMatchObject([3, { error: { code: 'config-invalid', data: { errors } } }])
    await server[Symbol.asyncDispose]()
  }
})

test('SIGINT is exit 130, whatever the verb waits for', async () => {
  const wait: Answer = (_, signal) => new Promise((resolve) => signal.addEventListener('abort', () => resolve(null)))
  const server = await serve({ ask: ({ resume }, signal) => (resume === undefined ? { id: 'm-1', result: null, live: false } : wait({}, signal)) })
  const stopped = await runCli(server.dataRoot, ['ask', 'coder', 'x'], { onNote: (text, interrupt) => (text.includes('no session') ? interrupt() : undefined) })
  expect([stopped.code, stopped.stdout]).toEqual([130, ''])
  expect(stopped.stderr).toMatch(/error: interrupted\n$/)
})

test('help and version are exit 0 on stdout; help names every verb', async () => {
  const help = await runCli('/nowhere', ['--help'])
  expect([help.code, help.stderr]).toEqual([0, ''])
  const verbs =
    'init config bus launch ps show stop kill pause resume logs transcript wait ask inbox answer message timeline task push review log trail env gc help version'
  for (const verb of verbs.split(' ')) expect(help.stdout).toMatch(new RegExp(`^  ${verb}\\b`, 'm'))
  expect((await runCli('/nowhere', ['launch', '--help'])).stdout).toContain('Examples:\n  mosaic launch coder')
  expect((await runCli('/nowhere', ['help', 'trail', 'verify'])).stdout).toContain('mosaic trail verify')
  expect((await runCli('/nowhere', ['--version'])).stdout).toBe('1.2.3\n')
  expect((await runCli('/nowhere', ['version', '--json'])).json).toMatchObject({ ok: true, data: { version: '1.2.3', protocol: 1 } })
})

test('help codes is the table of codes', async () => {
  const { json } = await runCli('/nowhere', ['help', 'codes', '--json'])
  expect(json?.data).toHaveLength(Object.keys(CODES).length)
  expect((await runCli('/nowhere', ['help', 'codes'])).stdout).toContain('not-approved\t6\t-\t')
})
