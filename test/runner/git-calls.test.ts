import { execFile, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { GIT_REMOTE, GIT_REMOTE_PROGRAM } from '../../src/launch/git-access.ts'
import type { SessionFile } from '../../src/protocol/session.ts'
import { openCaller } from '../../src/runner/git/caller.ts'
import { openGitCalls } from '../../src/runner/git/calls.ts'
import { serveGit } from '../../src/runner/git/serve.ts'

const who = ['-c', 'user.name=a', '-c', 'user.email=a@example.invalid']
let root: string
let env: NodeJS.ProcessEnv
let calls: Disposable
let host: Server
let tip: string
/** The headers that the host was sent. */
let asked: { readonly op: string; readonly cap: string; readonly commit?: string }[]
let answer: (socket: Socket, op: string) => void
let logged: string[]

const git = (...args: string[]): string => execFileSync('git', ['-C', join(root, 'stack'), ...who, ...args], { env, encoding: 'utf8' }).trim()
const run = promisify(execFile)
const start = (...args: string[]): Promise<{ stdout: string; stderr: string }> => run('git', ['-C', join(root, 'stack'), ...args], { env, timeout: 20_000 })

beforeEach(async () => {
  root = mkdtempSync('/tmp/mgc-')
  mkdirSync(join(root, 'bin'))
  writeFileSync(join(root, 'bin', GIT_REMOTE), GIT_REMOTE_PROGRAM, { mode: 0o755 })
  env = { PATH: `${join(root, 'bin')}:/usr/bin:/bin`, HOME: root, GIT_CONFIG_NOSYSTEM: '1', LC_ALL: 'C', MOSAIC_TOOL_SOCKET: join(root, 'tools.sock') }
  mkdirSync(join(root, 'stack'))
  git('init', '-q', '-b', 'main')
  git('commit', '-q', '--allow-empty', '-m', 'one')
  git('remote', 'add', 'mosaic', 'mosaic::stack')
  tip = git('rev-parse', 'HEAD')
  asked = []
  logged = []
  answer = (socket, op) =>
    void socket.end(`${JSON.stringify(op === 'list' ? { ok: true, tips: { 'refs/heads/main': tip } } : { ok: true, push: 'p1', ref: 'r' })}\n`)
  host = createServer({ allowHalfOpen: true }, (socket) => {
    socket
      .on('error', () => undefined)
      .once('data', (chunk: Buffer) => {
        const header = JSON.parse(chunk.toString('latin1').split('\n')[0] ?? '') as (typeof asked)[number]
        asked.push(header)
        answer(socket, header.op)
      })
  }).listen(join(root, 'git.sock'))
  await once(host, 'listening')
  const session = { projects: [{ id: 'stack', path: join(root, 'stack'), branch: 'main', kept: null }] } as unknown as SessionFile
  calls = openGitCalls(
    {
      serve: (caller, words, signal) => {
        const door = { path: join(root, 'git.sock'), toRequest: (header: object) => ({ ...header, cap: 'secret' }), signal }
        return serveGit({ session, door, listTasks: () => Promise.resolve([{ id: 't-1', project: null }]) }, caller, words, signal)
      },
      log: (line) => logged.push(line),
    },
    join(root, 'git'),
  )
})
afterEach(async () => {
  calls[Symbol.dispose]()
  host.close()
  await once(host, 'close')
  rmSync(root, { recursive: true, force: true })
})

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise(setImmediate)
}

const commit = (): string => {
  git('commit', '-q', '--allow-empty', '-m', 'on')
  return git('rev-parse', 'HEAD')
}

test('git pushes through a helper that is no Node, under a capability that it never has', async () => {
  const oid = commit()
  const { stderr } = await start('push', 'mosaic', 'HEAD:t-1')
  expect(stderr).toContain('remote: push p1 to task t-1\n')
  expect(stderr).toContain('To mosaic::stack\n * [new branch]      HEAD -> t-1\n')
  expect(asked.map(({ op, cap }) => [op, cap])).toEqual([
    ['list', 'secret'],
    ['push', 'secret'],
  ])
  expect(asked[1]?.commit).toBe(oid)
  await until(() => readdirSync(join(root, 'git')).length === 0)
})

test('a refusal reaches git with code and reason, for a push in its own line', async () => {
  answer = (socket) => void socket.end('{"ok":false,"error":"task-closed","why":"the task t-1 is closed"}\n')
  commit()
  await expect(start('push', 'mosaic', 'HEAD:refs/heads/t-1')).rejects.toMatchObject({
    stderr: expect.stringMatching(/^ ! \[remote rejected\] HEAD -> t-1 \(task-closed: the task t-1 is closed\)$/m) as unknown,
  })
  await expect(start('fetch', 'mosaic')).rejects.toMatchObject({ stderr: expect.stringMatching(/^fatal: remote error: task-closed: /m) as unknown })
})

test("outside of a clone, git is told what is wrong with the session's own", async () => {
  const list = (): ReturnType<typeof run> => run('git', ['ls-remote', 'mosaic::stack'], { cwd: root, env, timeout: 20_000 })
  answer = (socket) => void socket.end(`${JSON.stringify({ ok: true, size: 0, tips: { 'refs/heads/main': tip } })}\n`)
  expect((await list()).stdout).toContain(tip)
  rmSync(join(root, 'stack'), { recursive: true })
  await expect(list()).rejects.toMatchObject({ stderr: expect.stringMatching(/^fatal: remote error: file-unusable: the clone is gone$/m) as unknown })
})

test('a git that is killed takes its exchange with the host along', async () => {
  commit()
  const reached = new Promise<Socket>((resolve) => {
    answer = (socket, op) => {
      if (op === 'push') resolve(socket)
      else socket.end('{"ok":true,"tips":{}}\n')
    }
  })
  const child = spawn('git', ['-C', join(root, 'stack'), 'push', 'mosaic', 'HEAD:refs/heads/t-1'], { env, stdio: 'ignore' })
  const socket = await reached
  const ended = once(socket.resume(), 'close')
  child.kill('SIGKILL')
  socket.on('end', () => socket.destroy())
  await ended
  await until(() => readdirSync(join(root, 'git')).length === 0)
})

test("a FIFO that is named after the runner or one of its threads gets none of the runner's descriptors", () => {
  const names = readdirSync('/proc/self/task')
  expect(names).toContain(String(process.pid))
  expect(names.length).toBeGreaterThan(1)
  for (const name of names) expect(() => openCaller(name)).toThrow(/is for git to start/)
})

test('who is no helper of git is told so; what is no FIFO is removed', async () => {
  const child = spawn('/bin/sh', ['-c', 'exec 5<&0 6>&1; mkfifo "$1/$$" && exec cat "$1/$$"', 'helper', join(root, 'git')], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let told = ''
  for await (const chunk of child.stdout.setEncoding('utf8')) told += String(chunk)
  expect(told).toContain('fatal: git-remote-mosaic: git-remote-mosaic is for git to start')
  writeFileSync(join(root, 'git', '4194999'), '')
  await until(() => readdirSync(join(root, 'git')).length === 0)
  expect(logged).toHaveLength(1)
})

test('of what the caller has in its environment the gits of the runner get only where the repository is', async () => {
  const objects = join(root, 'objects')
  mkdirSync(objects)
  const trace = join(root, 'trace')
  env = { ...env, GIT_OBJECT_DIRECTORY: objects, GIT_ALTERNATE_OBJECT_DIRECTORIES: join(root, 'stack/.git/objects'), GIT_TRACE: trace }
  const oid = commit()
  expect((await start('push', 'mosaic', 'HEAD:t-1')).stderr).toContain('remote: push p1 to task t-1\n')
  expect(asked[1]?.commit).toBe(oid)
  const traced = readFileSync(trace, 'utf8')
  expect(traced).toContain('git-remote-mosaic')
  expect(traced).not.toContain('pack-objects')
})
