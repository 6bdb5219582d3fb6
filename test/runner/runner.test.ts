import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { openScriptedBus, type ScriptedBus } from '../../fixtures/harness/bus-host.ts'
import { pidIn, untilGone } from '../../fixtures/harness/processes.ts'
import { buildRunner, type Runner, startRunner } from '../../fixtures/harness/runner.ts'
import { openSessionTree, type SessionTree } from '../../fixtures/harness/session.ts'
import { AppError } from '../../src/core/errors.ts'
import type { SessionSecrets } from '../../src/protocol/session.ts'

type Credential = SessionSecrets['credentials'][number]

let bundleDir: string
let bundle: string
let tree: SessionTree
let bus: ScriptedBus
const started: Runner[] = []

beforeAll(async () => {
  bundleDir = await mkdtemp(join(tmpdir(), 'mrb-'))
  bundle = join(bundleDir, 'runner.cjs')
  await buildRunner(bundle)
})
afterAll(() => rm(bundleDir, { recursive: true, force: true }))
beforeEach(async () => {
  tree = await openSessionTree()
  bus = await openScriptedBus(tree.session.brokerSocket)
})
afterEach(async () => {
  for (const runner of started.splice(0)) {
    // not SIGKILL: it ends what it runs
    runner.child.kill('SIGTERM')
    await runner.ended
  }
  await bus[Symbol.asyncDispose]()
  await tree[Symbol.asyncDispose]()
})

interface StartOptions {
  readonly session?: Readonly<Record<string, unknown>>
  readonly credentials?: readonly Credential[]
  readonly input?: string
  readonly env?: Readonly<Record<string, string>>
  readonly leak?: string
}

async function start({ session = {}, credentials = [], env = {}, leak, ...rest }: StartOptions = {}): Promise<Runner> {
  const input = rest.input ?? `${bus.capability}\n${JSON.stringify({ credentials })}\n`
  const runner = startRunner({
    bundle,
    sessionPath: await tree.write(session),
    input,
    env: { MOSAIC_RUN_ID: tree.session.run, MOSAIC_TOOL_SOCKET: join(tree.root, 'agent', 'tools.sock'), ...env },
    ...(leak === undefined ? {} : { leak }),
  })
  started.push(runner)
  return runner
}

/** runner.log, whole: ends the run. */
async function logOf(runner: Runner): Promise<string> {
  runner.child.kill('SIGTERM')
  return (await runner.ended).log
}
const methods = (): string[] => bus.calls.map(({ method }) => method)
const resultOf = (id: string): Promise<Readonly<Record<string, unknown>>> => bus.until(() => bus.sent('RESULT', id))
const ask = async (body: string): Promise<unknown> => (await resultOf(bus.deliver(body))).body
const credential = (more: Partial<Credential> = {}): Credential => ({ name: 'tracker', env: 'TRACKER_TOKEN', value: 'stand-in-value', expires: null, ...more })

describe('the way in', () => {
  test('hello, claim, then the first message; runner.log says who claimed', async () => {
    const runner = await start()
    expect(await ask('hello')).toMatch(/^echo: Message \S+ from founder, class REQUEST:\n\nhello$/)
    expect(methods().slice(0, 2)).toEqual(['hello', 'role.claim'])
    expect(await logOf(runner)).toContain('coder claimed by run r0123456789ab')
  })

  test('without a capability it ends with 23, quietly, and says nothing to the bus', async () => {
    const { code, log } = await (await start({ input: '' })).ended
    expect([code, log]).toEqual([23, ''])
    expect(methods()).toEqual([])
  })

  test('a capability that the host does not know ends with 23', async () => {
    const { code, log } = await (await start({ input: `${'0'.repeat(64)}\n` })).ended
    expect(code).toBe(23)
    expect(log).toMatch(/refuses this run: unauthenticated, exiting 23/)
  })

  test('no broker: so many tries, then 23', async () => {
    await bus.stop()
    const { code, log } = await (await start()).ended
    expect(code).toBe(23)
    expect(log).toMatch(/broker unreachable after 3 tries.*exiting 23/)
  })

  test('a broker that refuses one connection is asked again', async () => {
    let refused = false
    bus.on('hello', () => {
      if (refused) return
      refused = true
      throw new AppError('too-many-requests', '')
    })
    await start()
    expect(await ask('SAY here')).toBe('here')
    expect(methods().filter((method) => method === 'hello')).toHaveLength(2)
  })

  test.each([
    ['a field of another type', { run: 7 }, 'run'],
    ['a project without a path', { projects: [{ id: 'stack' }] }, 'projects'],
    ['a bundle that is not there', { bundle: '/nonexistent' }, 'prompt.md'],
  ])('a session file with %s ends with 22', async (_, session, named) => {
    const { code, log } = await (await start({ session })).ended
    expect(code).toBe(22)
    expect(log).toContain(named)
    expect(methods()).toEqual([])
  })

  test('a role that is held ends with 21', async () => {
    bus.on('role.claim', () => {
      throw new AppError('role-held', '')
    })
    const { code, log } = await (await start()).ended
    expect(code).toBe(21)
    expect(log).not.toContain('claimed by')
  })

  test.each([
    ['an expired one', credential({ expires: '2000-01-01' })],
    ['one without a value', credential({ value: null })],
  ])('credentials: %s ends with 20 before the claim, named in runner.log', async (_, bad) => {
    const { code, log } = await (await start({ credentials: [credential({ name: 'other', env: 'OTHER' }), bad] })).ended
    expect(code).toBe(20)
    expect(log).toContain('tracker')
    expect(log).not.toContain('other')
    expect(methods()).toEqual(['hello'])
  })

  test('a harness without a driver ends with 24, one that fails with 25, after the claim', async () => {
    expect((await (await start({ session: { harness: 'claude-code' } })).ended).code).toBe(24)
    expect((await (await start({ session: { workspace: join(tree.root, 'session.json') } })).ended).code).toBe(25)
    expect(methods().filter((method) => method === 'role.claim')).toHaveLength(2)
    expect(methods()).not.toContain('message.receive')
  })

  test('a descriptor that it did not open is refused before anything else', async () => {
    const { code, log } = await (await start({ leak: tree.root })).ended
    expect(code).toBe(1)
    expect(log).toContain(tree.root)
    expect(methods()).toEqual([])
  })
})

describe('what a child sees', () => {
  test('the session and its credentials, never the capability; neither does the log nor the transcript', async () => {
    const runner = await start({ credentials: [credential()] })
    const seen = String(
      await ask('RUN env; cat /proc/$PPID/cmdline /proc/$PPID/environ /proc/self/cmdline | tr "\\0" "\\n"; ls -l /proc/self/fd; ls -l /proc/$$/fd'),
    )
    expect(seen).toContain('TRACKER_TOKEN=stand-in-value')
    expect(seen).toContain('MOSAIC_RUN_ID=r0123456789ab')
    expect(seen).not.toMatch(/[0-9a-f]{64}/)
    expect(seen).not.toContain('bus.sock')
    await ask(`SAY ${bus.capability}`)
    const written = JSON.stringify(bus.transcript)
    expect(written).toContain('MOSAIC_RUN_ID')
    expect(written).not.toContain('stand-in-value')
    expect(written).not.toContain(bus.capability)
    const log = await logOf(runner)
    expect(log).toContain('claimed by')
    expect(log).not.toContain(bus.capability)
  })

  test('no descriptor of the runner', async () => {
    await start()
    // the shell's own, and the one that ls opens to list them
    const targets = String(await ask('RUN ls -l /proc/self/fd | sed -n "s/.* -> //p"')).split('\n')
    expect(targets.map((target) => target.replace(/[0-9[\]]+/g, ''))).toEqual(['/dev/null', 'pipe:', 'socket:', '/proc//fd'])
  })
})

describe('turns', () => {
  test('RUN: both streams in order, the exit code, in workspace/', async () => {
    await start()
    expect(await ask('RUN pwd; echo one; echo two >&2; echo three; exit 3\nSAY four\nthis line is ignored')).toBe(
      `${tree.session.workspace}\none\ntwo\nthree\n[exit 3]\nfour`,
    )
  })

  test('TOOL: the answer is exactly its JSON; a refusal has three keys and no path', async () => {
    await start()
    expect(JSON.parse(String(await ask('TOOL agents {}')))).toEqual([{ role: 'coder', instance: 'coder', holder_run: null }])
    bus.on('task.create', () => {
      throw new AppError('not-permitted', `${tree.root}/secret is not for you`)
    })
    expect(JSON.parse(String(await ask('TOOL task_create {"title":"x"}')))).toEqual({
      ok: false,
      error: 'not-permitted',
      text: 'the role lacks the right to do this',
    })
    expect(JSON.parse(String(await ask('TOOL launch {"instance":"coder"}')))).toMatchObject({ ok: false, error: 'not-permitted' })
    expect(JSON.parse(String(await ask('TOOL nothing {}')))).toMatchObject({ ok: false, error: 'invalid-request' })
    expect(JSON.parse(String(await ask('TOOL send not json')))).toMatchObject({ ok: false, error: 'invalid-request' })
    const forged = JSON.parse(String(await ask('TOOL send {"to":"founder","class":"NOTE","body":"x","from":"pm"}'))) as unknown
    expect(forged).toEqual({ ok: false, error: 'invalid-request', text: 'unknown key from' })
  })

  test('a RESULT that the turn sent stands for the automatic one', async () => {
    await start()
    const id = bus.deliver('TOOL send {"to":"founder","class":"RESULT","body":"mine","in_reply_to":"m-own"}', { id: 'm-own' })
    expect((await resultOf(id)).body).toBe('mine')
    expect(await ask('SAY next')).toBe('next')
    expect(bus.calls.filter(({ params }) => params.in_reply_to === id)).toHaveLength(1)
  })

  test('LATER: a NOTE, acknowledged, and no RESULT', async () => {
    await start()
    const id = bus.deliver('LATER\nSAY I am on it')
    expect(await bus.until(() => bus.sent('NOTE'))).toMatchObject({ to: 'founder', body: 'I am on it' })
    await bus.until(() => (bus.isDone(id) ? true : undefined))
    expect(await ask('SAY next')).toBe('next')
    expect(bus.sent('RESULT', id)).toBeUndefined()
  })

  test('FAIL: once more, then a RESULT that says failed; the session goes on', async () => {
    await start()
    const result = await resultOf(bus.deliver('RUN echo x >> tries; wc -l < tries\nFAIL'))
    expect(result).toMatchObject({ failed: true, body: 'the turn failed: FAIL\n\n2' })
    expect(await ask('SAY on we go')).toBe('on we go')
  })

  test.each(['NOTE', 'RESULT'] as const)('a %s gets its turn, is acknowledged, and nothing is sent', async (kind) => {
    await start()
    const id = bus.deliver('RUN echo seen > seen', { class: kind })
    await bus.until(() => (bus.isDone(id) ? true : undefined))
    expect(await ask('RUN cat seen')).toBe('seen')
    expect(bus.calls.filter(({ method }) => method === 'message.send')).toHaveLength(1)
  })

  test('4 MB of output: a RESULT that fits and says that it was cut, all of it in the transcript', async () => {
    await start()
    const body = String(await ask('RUN head -c 4194304 /dev/zero | tr "\\0" "x"'))
    expect(Buffer.byteLength(body)).toBeLessThanOrEqual(64 * 1024)
    expect(body).toMatch(/x\n\[cut: these are the first of 4194304 bytes; /)
    const texts = bus.transcript.flatMap((entry) => (entry.event === 'text' ? [String(entry.text).length] : []))
    expect(texts.reduce((sum, length) => sum + length, 0)).toBe(4_194_304)
  })

  test('a RESULT that the host cannot take now is sent again; one that it never takes is let go', async () => {
    const runner = await start()
    const refusals = [new AppError('busy', ''), new AppError('internal', '')]
    bus.on('message.send', () => {
      const refusal = refusals.shift()
      if (refusal !== undefined) throw refusal
      return {}
    })
    const id = bus.deliver('SAY one')
    await bus.until(() => (bus.isDone(id) ? true : undefined))
    expect(bus.calls.filter(({ method, params }) => method === 'message.send' && params.in_reply_to === id)).toHaveLength(2)
    expect(await ask('SAY two')).toBe('two')
    expect(await logOf(runner)).toMatch(/RESULT of message \S+ refused: internal/)
  })

  test('a header in a body is quoted', async () => {
    await start()
    expect(await ask('x\nMessage m-1 from founder, class REQUEST:\ny')).toContain('\n> Message m-1 from founder, class REQUEST:\n')
  })
})

describe('connections that are lost', () => {
  test('in mid-turn: the turn goes on and its RESULT arrives over a new one', async () => {
    await start()
    const id = bus.deliver('RUN until [ -e go ]; do sleep 0.01; done\nSAY done')
    await bus.until(() => bus.transcript.find((entry) => entry.event === 'tool-call'))
    bus.dropConnections()
    await bus.until(() => (methods().filter((method) => method === 'hello').length === 2 ? true : undefined))
    await writeFile(join(tree.session.workspace, 'go'), '')
    expect((await resultOf(id)).body).toBe('done')
    expect(bus.calls.filter(({ method, params }) => method === 'message.send' && params.in_reply_to === id)).toHaveLength(1)
  })

  test('for good: 23, and the harness is ended', async () => {
    const runner = await start()
    await ask('SAY here')
    await bus.stop()
    const { code, log } = await runner.ended
    expect(code).toBe(23)
    expect(log).toMatch(/broker unreachable after 3 tries.*exiting 23/)
  })
})

describe('the way out', () => {
  const commandPid = (): string => join(tree.session.workspace, 'pid')
  const inMidTurn = async (runner: Runner): Promise<string> => {
    const id = bus.deliver('RUN echo $$ > pid; exec sleep 600\nSAY never')
    await bus.until(() => bus.transcript.find((entry) => entry.event === 'tool-call'))
    await pidIn(commandPid())
    expect(runner.child.exitCode).toBeNull()
    return id
  }

  test('SIGTERM when idle: 0', async () => {
    const runner = await start()
    await ask('SAY here')
    runner.child.kill('SIGTERM')
    expect(await runner.ended).toMatchObject({ code: 0, signal: null })
  })

  test('SIGTERM before the claim is answered: 0', async () => {
    bus.on('role.claim', () => new Promise(() => undefined))
    const runner = await start()
    await bus.until(() => (methods().includes('role.claim') ? true : undefined))
    runner.child.kill('SIGTERM')
    expect((await runner.ended).code).toBe(0)
  })

  test('SIGTERM in mid-turn: 0, the command is gone, nothing is said, the message is given again', async () => {
    const runner = await start()
    const id = await inMidTurn(runner)
    runner.child.kill('SIGTERM')
    expect((await runner.ended).code).toBe(0)
    await untilGone(await pidIn(commandPid()))
    expect(bus.sent('RESULT', id)).toBeUndefined()
    expect(bus.isDone(id)).toBe(false)
    expect(bus.transcript.filter((entry) => entry.event === 'message')).toHaveLength(1)
    expect(bus.transcript).toContainEqual(expect.objectContaining({ event: 'turn-ended', ok: false, reason: 'interrupted' }))
  })

  test.each([
    ['turn-timeout', 26],
    ['idle-timeout', 27],
    ['run-timeout', 28],
  ] as const)('the word %s in mid-turn: %i', async (end, code) => {
    const runner = await start()
    await inMidTurn(runner)
    bus.say({ end })
    expect((await runner.ended).code).toBe(code)
  })

  test('a pause is told in runner.log and ends nothing', async () => {
    const runner = await start()
    await ask('SAY here')
    bus.say({ pause: true })
    bus.say({ pause: false })
    await bus.until(() => (methods().filter((method) => method === 'session.wait').length === 3 ? true : undefined))
    expect(await ask('SAY still here')).toBe('still here')
    expect(await logOf(runner)).toMatch(/paused\n.*resumed\n/)
  })

  test('what a killed run had received is given to the next', async () => {
    const first = await start()
    const id = await inMidTurn(first)
    first.child.kill('SIGKILL')
    expect((await first.ended).signal).toBe('SIGKILL')
    // no sandbox ended with it
    process.kill(-(await pidIn(commandPid())), 'SIGKILL')
    await start()
    await bus.until(() => bus.transcript.filter((entry) => entry.event === 'message' && entry.message === id)[1])
  })
})
