import { afterAll, beforeAll, expect, test } from 'vitest'
import { SECTIONS } from '../../src/cli/modules.ts'
import { CODES } from '../../src/core/codes.ts'
import { AppError } from '../../src/core/errors.ts'
import { openCallServer } from '../client/call-server.ts'
import { Company } from '../helpers/company.ts'

let company: Company
beforeAll(async () => {
  company = await Company.open({ instances: ['coder', 'pm'] })
  await company.task('greet')
  await company.push('coder', 'greet', { file: 'wörk.txt' })
  await company.tool('coder', 'request_review', { task: 'greet' })
})
afterAll(() => company[Symbol.asyncDispose]())

const NOWHERE = '/tmp/mosaic-no-such-root'
/** Where no host runs. */
const away = (...words: string[]): string[] => [...words, '--data-root', NOWHERE]

/** Every verb at least once, each exit status of the contract at least once; what changes something is refused or a dry run. */
const ROWS: readonly (readonly [exit: number, words: readonly string[], code?: string])[] = [
  [0, ['version']],
  [0, ['help', 'codes']],
  [0, ['config', 'check']],
  [0, ['config', 'show']],
  [0, ['config', 'schema']],
  [0, ['config', 'explain', 'launch.by']],
  [4, ['config', 'explain', 'launch.nothing'], 'key-not-found'],
  [3, ['init'], 'config-exists'],
  [0, ['demo']],
  [2, ['doctor', 'nonsense'], 'usage'],
  [5, ['doctor', '--user', 'nobody'], 'not-permitted'],
  [0, ['harness', 'list']],
  [4, ['harness', 'probe', 'nonsense'], 'harness-not-found'],
  [11, ['bus', 'start'], 'host-running'],
  [11, ['bus', 'start', '--detach'], 'host-running'],
  [10, away('bus', 'stop'), 'host-not-running'],
  [0, ['bus', 'stop', '--dry-run']],
  [0, ['bus', 'restart', '--dry-run']],
  [0, ['bus', 'status']],
  [0, ['bus', 'reload']],
  [10, away('bus', 'logs'), 'host-not-running'],
  [0, ['service', 'print', '--user']],
  [4, ['service', 'uninstall', '--user', '--dry-run'], 'not-running'],
  [5, ['service', 'install', '--system'], 'not-permitted'],
  [3, ['launch', 'coder'], 'instance-running'],
  [3, ['launch', 'nobody'], 'instance-not-listed'],
  [0, ['launch', 'reviewer', '--dry-run']],
  [10, away('launch', 'coder'), 'host-not-running'],
  [0, ['ps', '-aq']],
  [4, ['show', 'r000000000000'], 'run-not-found'],
  [4, ['stop', 'reviewer'], 'not-running'],
  [0, ['stop', '--all', '--dry-run']],
  [4, ['kill', 'coder'], 'run-not-found'],
  [4, ['pause', 'nobody'], 'instance-not-found'],
  [0, ['resume', 'coder']],
  [4, ['wait', 'r000000000000'], 'run-not-found'],
  [4, ['logs', 'coder'], 'run-not-found'],
  [4, ['transcript', 'coder'], 'run-not-found'],
  [124, ['ask', 'reviewer', 'hello', '--timeout', '0s'], 'timeout'],
  [4, ['ask', 'nobody', 'hello'], 'unknown-recipient'],
  [0, ['inbox', '--new']],
  [4, ['answer', 'm9999', 'x'], 'message-not-found'],
  [0, ['message', 'owed']],
  [4, ['message', 'show', 'm9999'], 'message-not-found'],
  [4, ['message', 'thread', 'm9999'], 'message-not-found'],
  [6, ['message', 'send', '--to', 'coder', '--class', 'RESULT', '--in-reply-to', 'm1', 'x'], 'not-owed'],
  [0, ['task', 'list']],
  [0, ['task', 'show', 'gre']],
  [6, ['task', 'create', 'x', '--id', 'greet'], 'task-exists'],
  [4, ['task', 'assign', 'greet', 'nobody'], 'instance-not-found'],
  [6, ['task', 'close', 'greet'], 'not-approved'],
  [6, ['task', 'fetch', 'greet'], 'not-approved'],
  [0, ['push', 'list']],
  [0, ['push', 'show', 'p1']],
  [4, ['push', 'diff', 'p9'], 'push-not-found'],
  [0, ['review', 'list']],
  [0, ['review', 'show', 'q1']],
  [2, ['review', 'approve', 'q1', '--commit', '0'.repeat(40)], 'invalid-request'],
  [4, ['review', 'reject', 'q9'], 'request-not-found'],
  [0, ['timeline', '--since', '1h']],
  [0, ['log']],
  [4, ['log', 'explain', '99999'], 'record-not-found'],
  [0, ['trail', '--kind', 'session.started']],
  [0, ['trail', 'head']],
  [0, ['trail', 'verify']],
  [3, ['trail', 'export', '/proc/none/x'], 'file-unusable'],
  [0, ['usage']],
  [0, ['env', 'list']],
  [0, ['env', 'du']],
  [3, ['env', 'release', 'coder'], 'env-root-busy'],
  [0, ['gc']],
  [0, ['repo', 'list']],
  [4, ['repo', 'sync', 'nothing'], 'project-not-found'],
  [3, ['backup', '/proc/none/x'], 'file-unusable'],
  [3, ['restore', '/proc/none/x'], 'file-unusable'],
]

test.each(ROWS.map(([exit, words, code]) => ({ exit, words, code })))('exit $exit: mosaic $words', async ({ exit, words, code }) => {
  const people = await company.run(words)
  expect([people.code, people.stderr]).toEqual([exit, exit === 0 ? expect.anything() : expect.stringMatching(/^error: |\nerror: /)])
  const programs = await company.run([...words, '--json'])
  const { error } = JSON.parse(programs.stdout) as { error?: { code: string } }
  expect([programs.code, error?.code]).toEqual([exit, code])
})

/** Those without an error of their own: the answer no, and a person at the keyboard. */
test('exit 1: the answer is no', async () => {
  for (const more of [[], ['--json']]) expect((await company.run(['trail', 'verify', '--head', 'a'.repeat(64), ...more])).code).toBe(1)
  // a machine without systemd says that instead
  expect([1, 12]).toContain((await company.run(['service', 'status', '--user'])).code)
})

test('what is said names things as people do', async () => {
  expect((await company.run(['push', 'diff', 'p1'])).stdout).toContain('+++ b/wörk.txt\n')
  expect((await company.run(['task', 'create', 'To the moon \u{1f469}\u200d\u{1f680}'])).stderr).toContain('a title is one line of printable characters')
  expect((await company.json(['review', 'approve', 'q1', '--commit', 'abcdef'])).error.message).toContain('first 7 of 40')
})

test('exit 12: the host speaks another version', async () => {
  const other = await openCallServer({
    hello: () => {
      throw new AppError('protocol-mismatch', 'this bus host speaks protocol 2, not 1')
    },
  })
  for (const more of [[], ['--json']]) {
    const { code, stdout, stderr } = await company.run(['ps', '--data-root', other.dataRoot, ...more])
    expect([code, stdout + stderr]).toEqual([12, expect.stringContaining('mosaic bus restart')])
  }
  await other[Symbol.asyncDispose]()
})

test.each(['SIGINT', 'SIGTERM'] as const)('exit 130: %s, in words and as an envelope', async (signal) => {
  for (const more of [[], ['--json']]) {
    const { code, stdout, stderr } = await company.interrupt(['ask', 'reviewer', 'hello', ...more], signal)
    expect([code, more.length === 0 ? stderr : stdout]).toEqual([130, expect.stringMatching(/mosaic ask --resume m\d+/)])
  }
})

test('every verb has a row, and every exit status', async () => {
  const specs = (await Promise.all(SECTIONS.flatMap(({ modules }) => modules).map(({ load }) => load()))).flatMap(({ commands }) => commands)
  const verbs = specs.map(({ name }) => name.replace(/ [<[].*$/, ''))
  const driven = [...ROWS.map(([, words]) => words.join(' ')), 'service status']
  expect(verbs.filter((verb) => !driven.some((words) => `${words} `.startsWith(`${verb} `)))).toEqual([])
  const exits = new Set([...ROWS.map(([exit]) => exit), 1, 12, 130])
  expect([...exits].sort((a, b) => a - b)).toEqual([...new Set([0, ...Object.values(CODES).map(({ exit }) => exit)])].sort((a, b) => a - b))
})
