import { execFile, spawnSync } from 'node:child_process'
import { closeSync, mkdtempSync, openSync, readFileSync, readlinkSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { promisify } from 'node:util'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createChildren, type Child, type Stdio } from '../../src/core/children.ts'
import { childrenOf, openFds, statusOf } from '../../src/core/proc.ts'

const children = createChildren()
const LIMIT = 200

let root: string
beforeEach(() => {
  root = mkdtempSync('/tmp/mk-')
})
afterEach(() => rmSync(root, { recursive: true }))

const start = (path: string, args: readonly string[], stdio: readonly Stdio[]): Child => children.start({ path, args, env: { A: 'b' }, cwd: '/', stdio })
const sh = (script: string, stdio: readonly Stdio[] = ['ignore', 'pipe', 'ignore']): Child => start('/bin/sh', ['-c', script], stdio)

async function outputOf(child: Child): Promise<string> {
  const [, stdout] = child.stdio
  const said = stdout === null || stdout === undefined ? '' : await text(stdout)
  await child.closed
  return said
}

test('a program runs with the arguments, the environment and the folder that it was given, and its exit code is known', async () => {
  const child = sh('echo "$0 $A $(pwd) $(env | wc -l)"; exit 7')
  expect([child.exitCode, child.signalCode]).toEqual([null, null])
  // the shell adds PWD
  expect(await outputOf(child)).toBe('/bin/sh b / 2\n')
  expect([child.exitCode, child.signalCode]).toEqual([7, null])
})

test('what it reads and writes goes through its pipes, and an end of ours that closes is its end of file', async () => {
  const child = start('/bin/cat', [], ['pipe', 'pipe', 'ignore'])
  child.stdio[0]?.end('x'.repeat(1_000_000))
  expect((await outputOf(child)).length).toBe(1_000_000)
  expect(child.exitCode).toBe(0)
})

test('one that ends while its input is open leaves no descriptor of it', async () => {
  const before = openFds()
  await sh('exit 0', ['pipe', 'ignore', 'ignore', 'pipe']).closed
  expect(openFds()).toEqual(before)
})

test('a pipe past the first three goes both ways', async () => {
  const child = sh('read -r word <&3; echo "$word!" >&3', ['ignore', 'ignore', 'ignore', 'pipe'])
  const pipe = child.stdio[3]
  if (pipe === null || pipe === undefined) throw new Error('no pipe')
  pipe.write('one\n')
  expect(await text(pipe)).toBe('one!\n')
  await child.closed
})

test('a signal that ended it is known by its name', async () => {
  const child = sh('kill -TERM $$')
  await child.exited
  expect([child.exitCode, child.signalCode]).toEqual([null, 'SIGTERM'])
})

test('a signal of two names has the one that people know', async () => {
  const child = sh('kill -ABRT $$')
  await child.exited
  expect(child.signalCode).toBe('SIGABRT')
})

test.each([
  ['ENOENT', '/nonexistent/program'],
  ['EACCES', '/etc/passwd'],
  ['EACCES', '/tmp'],
])('what cannot be started is %s at once, and leaves nothing', (code, path) => {
  const before = openFds()
  expect(() => start(path, [], ['pipe', 'pipe', 'ignore', 'pipe'])).toThrow(expect.objectContaining({ code, message: `spawn ${path}: ${code}` }))
  expect(openFds()).toEqual(before)
  expect(process.listenerCount('SIGCHLD')).toBe(0)
})

test('it has the descriptors that it was given under their numbers, whatever theirs are here, and no others', async () => {
  const files = Array.from({ length: 40 }, (_, n) => {
    const path = join(root, String(n))
    writeFileSync(path, String(n))
    return openSync(path, 'r')
  })
  // in reverse, so that sources lie among the targets, each to be overwritten before it is used
  const shuffled = files.toReversed()
  const child = sh('for fd in /proc/self/fd/*; do readlink "$fd"; done', ['ignore', 'pipe', 'ignore', ...shuffled])
  const lines = (await outputOf(child)).trim().split('\n')
  const names = lines.filter((line) => line.startsWith(root)).map((line) => line.slice(root.length + 1))
  const wanted = shuffled.map((_, at) => String(files.length - 1 - at))
  expect(names.toSorted()).toEqual(wanted.toSorted())
  const each = sh(`for fd in $(seq 3 ${String(files.length + 2)}); do eval "cat /proc/self/fd/$fd"; echo; done`, ['ignore', 'pipe', 'ignore', ...shuffled])
  expect((await outputOf(each)).trim().split('\n')).toEqual(wanted)
  // what this process inherited without CLOEXEC goes to every child: the host closes that at its start
  const beside = spawnSync('/bin/ls', ['/proc/self/fd'], { encoding: 'utf8' }).stdout
  expect(await outputOf(start('/bin/ls', ['/proc/self/fd'], ['ignore', 'pipe', 'ignore']))).toBe(beside)
  for (const fd of files) expect(readlinkSync(`/proc/self/fd/${String(fd)}`)).toContain(root)
  for (const fd of files) closeSync(fd)
})

test('it leads a session of its own, ignores no signal and blocks none', async () => {
  const child = start('/bin/sleep', ['600'], ['ignore', 'ignore', 'ignore'])
  // the upper half is glibc's own: its two internal signals are ignored in whatever it spawns
  const ignored = (pid: number): string | undefined => statusOf(pid).SigIgn?.slice(-8)
  expect([ignored(child.pid)?.replace(/^8/, '0'), statusOf(child.pid).SigBlk]).toEqual(['00000000', '0000000000000000'])
  // SIGPIPE, as Node does
  expect(ignored(process.pid)).toMatch(/1...$/)
  const [, , , , group, session] = readFileSync(`/proc/${String(child.pid)}/stat`, 'utf8').split(' ')
  expect([group, session]).toEqual([String(child.pid), String(child.pid)])
  process.kill(-child.pid, 'SIGKILL')
  await child.exited
  expect(child.signalCode).toBe('SIGKILL')
})

test('of many at once each end is told, and no zombie, no descriptor and no listener is left', async () => {
  const [before, others] = [openFds(), childrenOf(process.pid)]
  const codes = await Promise.all(
    Array.from({ length: LIMIT }, async (_, n) => {
      const child = sh(`cat; exit ${String(n % 100)}`, ['pipe', 'pipe', 'pipe'])
      child.stdio[0]?.end(String(n))
      child.stdio[2]?.resume()
      return [await outputOf(child), child.exitCode]
    }),
  )
  expect(codes).toEqual(Array.from({ length: LIMIT }, (_, n) => [String(n), n % 100]))
  expect(childrenOf(process.pid)).toEqual(others)
  expect(openFds()).toEqual(before)
  expect(process.listenerCount('SIGCHLD')).toBe(0)
})

test("Node's own children are not waited for, and ours end beside them", async () => {
  const own = Promise.all(Array.from({ length: 20 }, () => promisify(execFile)('/bin/sh', ['-c', 'echo node'])))
  const ours = await Promise.all(Array.from({ length: 20 }, () => outputOf(sh('echo ours'))))
  expect(new Set(ours)).toEqual(new Set(['ours\n']))
  expect(new Set((await own).map(({ stdout }) => stdout))).toEqual(new Set(['node\n']))
})
