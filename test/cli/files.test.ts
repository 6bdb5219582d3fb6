import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync, copyFileSync, mkdirSync, mkdtempSync, renameSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { followLines, readLines } from '../../src/cli/tail.ts'
import { openRotatingFile } from '../../src/core/rotating-file.ts'
import { openCallServer } from '../client/call-server.ts'
import type { RunRow } from '../../src/protocol/rows.ts'
import { AT, RUN, runRow } from './rows.ts'
import { runCli } from './run-cli.ts'

let root: string
let file: string
beforeEach(() => {
  root = mkdtempSync('/tmp/mc-')
  file = join(root, 'runner.log')
})
afterEach(() => rmSync(root, { recursive: true, force: true }))

test('the last lines of a file, all of them, none of them', async () => {
  writeFileSync(file, 'one\ntwo\nthree')
  expect(await readLines(file, undefined)).toEqual(['one', 'two', 'three'])
  expect(await readLines(file, 2)).toEqual(['two', 'three'])
  expect(await readLines(file, 0)).toEqual([])
  writeFileSync(file, '')
  expect(await readLines(file, 5)).toEqual([])
})

test('the last lines begin in what was put aside', async () => {
  for (const [name, text] of [
    ['.2', 'one\ntwo\n'],
    ['.1', 'three\n'],
    ['', 'four\nfive\n'],
    ['.4', 'of another log\n'],
  ] as const)
    writeFileSync(`${file}${name}`, text)
  expect(await readLines(file, undefined)).toEqual(['one', 'two', 'three', 'four', 'five'])
  expect(await readLines(file, 4)).toEqual(['two', 'three', 'four', 'five'])
  expect(await readLines(file, 1)).toEqual(['five'])
  const stop = new AbortController()
  const lines = followLines(file, 3, stop)
  const seen: unknown[] = []
  while (seen.length < 3) seen.push((await lines.next()).value)
  expect(seen).toEqual(['three', 'four', 'five'])
  stop.abort()
  await expect(lines.next()).rejects.toMatchObject({ name: 'AbortError' })
})

test('a followed log that is copied and emptied loses no line, a torn one neither', async () => {
  writeFileSync(file, 'one\n')
  const stop = new AbortController()
  const lines = followLines(file, undefined, stop)
  expect((await lines.next()).value).toBe('one')
  appendFileSync(file, 'two\nthr')
  expect((await lines.next()).value).toBe('two')
  appendFileSync(file, 'ee\nfour\n')
  copyFileSync(file, `${file}.1`)
  truncateSync(file)
  appendFileSync(file, 'five\n')
  const seen: unknown[] = []
  while (seen.length < 3) seen.push((await lines.next()).value)
  expect(seen).toEqual(['three', 'four', 'five'])
  stop.abort()
  await expect(lines.next()).rejects.toMatchObject({ name: 'AbortError' })
})

test('a followed file: whole lines only, through rotation, a cut and characters split anywhere', async () => {
  writeFileSync(file, 'old\none\n')
  const stop = new AbortController()
  const lines = followLines(file, 1, stop)
  const next = async (): Promise<string | undefined> => (await lines.next()).value as string | undefined
  expect(await next()).toBe('one')
  const euro = Buffer.from('€2\n')
  appendFileSync(file, Buffer.concat([Buffer.from('two '), euro.subarray(0, 1)]))
  appendFileSync(file, euro.subarray(1))
  expect(await next()).toBe('two €2')
  renameSync(file, `${file}.1`)
  writeFileSync(file, 'three\n')
  expect(await next()).toBe('three')
  truncateSync(file)
  appendFileSync(file, 'four\n')
  expect(await next()).toBe('four')
  stop.abort()
  await expect(lines.next()).rejects.toMatchObject({ name: 'AbortError' })
})

test('a followed log loses no line of many rotations between two looks', async () => {
  const log = openRotatingFile(file, { maxBytes: 40, keep: 8 }, () => '')
  const numbers = (from: number, to: number): string[] => Array.from({ length: to - from }, (_, n) => `line ${String(from + n)}`)
  for (const line of numbers(0, 8)) log.write(`${line}\n`)
  const stop = new AbortController()
  const lines = followLines(file, 1, stop)
  expect((await lines.next()).value).toBe('line 7')
  for (const line of numbers(8, 40)) log.write(`${line}\n`)
  const seen: unknown[] = []
  while (seen.length < 32) seen.push((await lines.next()).value)
  expect(seen).toEqual(numbers(8, 40))
  stop.abort()
  await expect(lines.next()).rejects.toMatchObject({ name: 'AbortError' })
  log.close()
})

test('a file that is not there yet is waited for', async () => {
  const stop = new AbortController()
  const lines = followLines(file, undefined, stop)
  const first = lines.next()
  writeFileSync(file, 'here\n')
  expect((await first).value).toBe('here')
  stop.abort()
  await expect(lines.next()).rejects.toMatchObject({ name: 'AbortError' })
})

test('logs: the path, the text, the last lines; escaped for people', async () => {
  writeFileSync(file, 'coder claimed\n\x1b[2Jevil\n')
  let end = (): void => undefined
  const ended = new Promise<RunRow>((resolve) => (end = () => resolve(runRow({ state: 'ended', live: false }))))
  const server = await openCallServer({ logs: () => ({ path: file }), wait: () => ended })
  const of = (...more: string[]): ReturnType<typeof runCli> => runCli(server.dataRoot, ['logs', RUN, ...more])
  expect((await of('--path')).stdout).toBe(`${file}\n`)
  expect((await of()).stdout).toBe('coder claimed\n\\x1b[2Jevil\n')
  expect((await of('-n', '1')).stdout).toBe('\\x1b[2Jevil\n')
  expect((await of('--json')).json).toEqual({ ok: true, data: { path: file, text: 'coder claimed\n\x1b[2Jevil\n' } })
  const onOutput = (text: string, interrupt: () => void): void =>
    text === 'three\n' ? interrupt() : text.includes('evil') ? appendFileSync(file, 'three\n') : undefined
  const followed = await runCli(server.dataRoot, ['logs', RUN, '-f'], { onOutput })
  expect([followed.code, followed.stdout]).toEqual([130, 'coder claimed\n\\x1b[2Jevil\nthree\n'])
  const toItsEnd = await runCli(server.dataRoot, ['logs', RUN, '-f'], {
    onOutput: (text) => {
      if (text !== 'three\n') return
      appendFileSync(file, 'last\n')
      end()
    },
  })
  expect([toItsEnd.code, toItsEnd.stdout]).toEqual([0, 'coder claimed\n\\x1b[2Jevil\nthree\nlast\n'])
  rmSync(file)
  expect(await of()).toMatchObject({ code: 0, stdout: '' })
  rmSync(root, { recursive: true })
  expect((await of()).code).toBe(4)
  await server[Symbol.asyncDispose]()
})

test('transcript: Markdown in which what was said is quoted, or JSON lines; a torn line is none', async () => {
  const entries = [
    { at: AT, event: 'message', message: 'm-1', from: 'host', class: 'NOTE', text: 'Message m-1 from host, class NOTE:\n\nt-1\n### forged' },
    { at: AT, event: 'tool-result', name: 'send', ok: true },
  ]
  writeFileSync(file, `${entries.map((entry) => JSON.stringify(entry)).join('\n')}\n{"at":"2026`)
  const server = await openCallServer({ transcript: () => ({ path: file }) })
  const of = (...more: string[]): ReturnType<typeof runCli> => runCli(server.dataRoot, ['transcript', RUN, ...more])
  expect((await of()).stdout).toBe(
    `### ${AT} · message · message=m-1 · from=host · class=NOTE\n> Message m-1 from host, class NOTE:\n> \n> t-1\n> ### forged\n\n### ${AT} · tool-result · name=send · ok=true\n\n`,
  )
  expect((await of('--format', 'jsonl')).stdout).toBe(entries.map((entry) => `${JSON.stringify(entry)}\n`).join(''))
  expect((await of('--json')).json).toEqual({ ok: true, data: entries })
  const sly = { at: AT, event: 'said', text: 'C1 \u009b2J, bidi \u202e, zero width \u200b, filler \u3164, €' }
  writeFileSync(file, `${JSON.stringify(sly)}\n`)
  const { stdout } = await of('--format', 'jsonl')
  expect(stdout).toContain('C1 \\u009b2J, bidi \\u202e, zero width \\u200b, filler \\u3164, €')
  expect(JSON.parse(stdout)).toEqual(sly)
  await server[Symbol.asyncDispose]()
})

test('bus logs reads the file, host or no host', async () => {
  mkdirSync(join(root, 'bus-host'))
  writeFileSync(join(root, 'bus-host', 'host.log'), `{"level":40,"time":"${AT}","pid":1,"run":"${RUN}","msg":"run \\u001b[2J ended"}\nno JSON\n`)
  expect((await runCli(root, ['bus', 'logs'])).stdout).toBe(`2026-01-31 09:00:00Z warn run \\x1b[2J ended run=${RUN}\nno JSON\n`)
  expect((await runCli(root, ['bus', 'logs', '-n', '1', '--json'])).json).toEqual({ ok: true, data: [{ msg: 'no JSON' }] })
})

test('bus stop returns when the process of the host is gone, not before', async () => {
  const host = spawn('cat', { stdio: ['pipe', 'ignore', 'inherit'] })
  const order: string[] = []
  const gone = once(host, 'exit').then(() => order.push('gone'))
  const server = await openCallServer({
    status: () => ({ pid: host.pid, business: 'acme' }),
    shutdown: async ({ drainMs }) => {
      order.push(`shutdown ${String(drainMs)}`)
      host.stdin.end()
      await server.stop()
    },
  })
  const stopped = await runCli(server.dataRoot, ['bus', 'stop', '--drain', '5s'])
  await gone
  expect([stopped.code, stopped.stdout]).toEqual([0, `the bus host of acme (pid ${String(host.pid)}) has stopped\n`])
  expect(order).toEqual(['shutdown 5000', 'gone'])
  expect((await runCli(server.dataRoot, ['bus', 'stop'])).code).toBe(10)
  await server[Symbol.asyncDispose]()
})
