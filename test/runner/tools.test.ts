import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createConnection, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { describe, expect, test } from 'vitest'
import { AppError } from '../../src/core/errors.ts'
import { askLaunch } from '../../src/runner/launch-socket.ts'
import { listTools } from '../../src/runner/tool-schemas.ts'
import { openToolServer } from '../../src/runner/tool-server.ts'
import { createTools, type ToolDeps, type TurnMarks } from '../../src/runner/tools.ts'

const withDeps = (more: Partial<ToolDeps> = {}): ReturnType<typeof createTools> =>
  createTools({ callBus: (method, params) => Promise.resolve({ method, params }), launch: null, git: null, currentTurn: () => undefined, ...more })

async function inDir<T>(use: (dir: string) => Promise<T>): Promise<T> {
  const dir = await mkdtemp(join(tmpdir(), 'mrt-'))
  try {
    return await use(dir)
  } finally {
    await rm(dir, { recursive: true, force: true })
  }
}

describe('tools', () => {
  test('a tool of the bus is one method with the same arguments', async () => {
    const call = withDeps()
    expect(await call('request_review', { task: 't-1' })).toEqual({ ok: true, result: { method: 'review.request', params: { task: 't-1' } } })
    expect(await call('tasks', {})).toEqual({ ok: true, result: { method: 'task.list', params: {} } })
  })

  test('a result of nothing is ok', async () => {
    expect(await withDeps({ callBus: () => Promise.resolve(null) })('stop', { instance: 'coder' })).toEqual({ ok: true, result: { ok: true } })
  })

  test.each([
    ['why is told', new AppError('not-fast-forward', 'the tip is 0123abc'), 'the tip is 0123abc'],
    ['a path is not', new AppError('not-fast-forward', 'in /home/ada/x'), 'the push does not continue the current tip of the task'],
    ['nor one in quotes', new AppError('not-fast-forward', "in '/home/ada/x'"), 'the push does not continue the current tip of the task'],
    ['a ref is no path', new AppError('not-fast-forward', 'refs/heads/main is ahead'), 'refs/heads/main is ahead'],
  ])('of a refusal %s', async (_, error, text) => {
    expect(await withDeps({ callBus: () => Promise.reject(error) })('trail', {})).toEqual({ ok: false, error: 'not-fast-forward', text })
  })

  test('what is no refusal is internal and says nothing of itself', async () => {
    const answer = await withDeps({ callBus: () => Promise.reject(new Error('boom in /home/ada')) })('trail', {})
    expect(answer).toEqual({ ok: false, error: 'internal', text: 'the bus host failed; its log says how' })
  })

  test.each(['toString', '__proto__', 'constructor', 'pull'])('%s is no tool', async (name) => {
    expect(await withDeps()(name, {})).toMatchObject({ ok: false, error: 'invalid-request' })
  })

  test('launch: the reply as it came, or the fixed text of its code', async () => {
    const reply = { ok: true, run: 'r0123456789ab', instance: 'coder', harness: 'script', model: 'm', env: 'created' }
    expect(await withDeps({ launch: () => Promise.resolve(reply) })('launch', { instance: 'coder' })).toEqual({ ok: true, result: reply })
    const refused = await withDeps({ launch: () => Promise.resolve({ ok: false, error: 'capacity-full' }) })('launch', { instance: 'coder' })
    expect(refused).toEqual({ ok: false, error: 'capacity-full', text: 'the model family has no free slot' })
    expect(await withDeps()('launch', { instance: 'coder' })).toMatchObject({ ok: false, error: 'not-permitted' })
    expect(await withDeps({ launch: () => Promise.resolve(reply) })('launch', { cap: 'x' })).toMatchObject({ ok: false, error: 'invalid-request' })
  })

  test('answer_later and a RESULT of its own mark the turn under way, and only it', async () => {
    const turn: TurnMarks = { id: 'm-1', class: 'REQUEST', later: false, answered: false }
    const call = withDeps({ currentTurn: () => turn })
    await call('send', { to: 'founder', class: 'RESULT', in_reply_to: 'm-0', body: '' })
    await call('send', { to: 'founder', class: 'NOTE', in_reply_to: 'm-1', body: '' })
    expect(turn).toMatchObject({ later: false, answered: false })
    await call('send', { to: 'founder', class: 'RESULT', in_reply_to: 'm-1', body: '' })
    await call('answer_later', {})
    expect(turn).toMatchObject({ later: true, answered: true })
  })

  test('a RESULT that is refused marks nothing; answer_later needs a REQUEST', async () => {
    const turn: TurnMarks = { id: 'm-1', class: 'NOTE', later: false, answered: false }
    const call = withDeps({ currentTurn: () => turn, callBus: () => Promise.reject(new AppError('not-owed', '')) })
    expect(await call('send', { class: 'RESULT', in_reply_to: 'm-1' })).toMatchObject({ ok: false, error: 'not-owed' })
    expect(await call('answer_later', {})).toMatchObject({ ok: false, error: 'not-owed' })
    expect(turn).toMatchObject({ later: false, answered: false })
  })
})

describe('the list of tools', () => {
  test('holds what is granted, with the schemas of the protocol', () => {
    const names = (grants: readonly string[]): string[] => listTools(grants).map(({ name }) => name)
    expect(names([])).toEqual(['send', 'answer_later', 'owed', 'agents', 'tasks', 'trail'])
    expect(names(['role.launch', 'task.create', 'task.close', 'review.request', 'review.verdict'])).toHaveLength(13)
    expect(names(['git.push.working'])).toEqual(['send', 'answer_later', 'owed', 'agents', 'tasks', 'push', 'fetch', 'trail'])
    const send = listTools([]).find(({ name }) => name === 'send')
    expect(send?.inputSchema).toMatchObject({ type: 'object', required: ['to', 'class', 'body'], additionalProperties: false })
  })
})

describe('the tool socket', () => {
  test('one answer a line, in the order asked; its directory is private', async () => {
    await inDir(async (dir) => {
      const path = join(dir, 'agent', 'tools.sock')
      await using server = await openToolServer({ callTool: withDeps(), listTools: () => Promise.resolve(listTools([])), log: () => undefined }, path)
      expect(server).toBeDefined()
      const socket = createConnection(path)
      socket.write('{"tool":"owed"}\n{"tool":"nothing"}\n{"list":true}\n{"tool":7}\n')
      const lines: unknown[] = []
      for await (const line of createInterface(socket)) if (lines.push(JSON.parse(line)) === 4) break
      socket.destroy()
      expect(lines[0]).toEqual({ ok: true, result: { method: 'message.owed', params: {} } })
      expect(lines[1]).toMatchObject({ ok: false, error: 'invalid-request' })
      expect(lines[2]).toMatchObject({ ok: true, result: [{ name: 'send' }, {}, {}, {}, {}, {}] })
      expect(lines[3]).toMatchObject({ ok: false, error: 'invalid-request' })
    })
  })

  test('a client that speaks nonsense costs its own connection only', async () => {
    await inDir(async (dir) => {
      const path = join(dir, 'tools.sock')
      const logged: string[] = []
      await using server = await openToolServer({ callTool: withDeps(), listTools: () => Promise.resolve([]), log: (line) => logged.push(line) }, path)
      expect(server).toBeDefined()
      const bad = createConnection(path)
      bad.write('nonsense\n')
      await once(bad.resume(), 'close')
      expect(logged).toHaveLength(1)
      const good = createConnection(path)
      good.write('{"tool":"owed"}\n')
      const [chunk] = (await once(good, 'data')) as [Buffer]
      good.destroy()
      expect(JSON.parse(chunk.toString())).toMatchObject({ ok: true })
    })
  })
})

describe('the launch socket', () => {
  test('one request, one reply; nobody there, or no answer, is host-not-running', async () => {
    await inDir(async (dir) => {
      const path = join(dir, 'launch.sock')
      const { signal } = new AbortController()
      await expect(askLaunch(path, {}, signal)).rejects.toMatchObject({ code: 'host-not-running' })
      const answers = ['{"ok":true,', '']
      const server = createServer((socket) => {
        socket.once('data', () => {
          const first = answers.shift() ?? ''
          socket.write(first)
          socket.end(first === '' ? '' : '"run":"r1"}\n')
        })
      }).listen(path)
      await once(server, 'listening')
      expect(await askLaunch(path, { instance: 'coder' }, signal)).toEqual({ ok: true, run: 'r1' })
      await expect(askLaunch(path, { instance: 'coder' }, signal)).rejects.toMatchObject({ code: 'host-not-running' })
      server.close()
    })
  })
})
