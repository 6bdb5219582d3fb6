import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { openSessionTree, type SessionTree } from '../../fixtures/harness/session.ts'
import type { CallTool, Driver, DriverEvent, Harness } from '../../src/harness/contract.ts'
import { HARNESSES } from '../../src/harness/registry.ts'

/** How one harness is made to do something: the text of a message, in whatever its scripted model understands. */
interface Subject {
  readonly harness: Harness
  readonly say: (text: string) => string
  readonly callTool: (name: string, args: object) => string
  readonly run: (command: string) => string
  readonly fail: () => string
}

const SUBJECTS: Readonly<Record<string, Omit<Subject, 'harness'>>> = {
  script: {
    say: (text) => `SAY ${text}`,
    callTool: (name, args) => `TOOL ${name} ${JSON.stringify(args)}`,
    run: (command) => `RUN ${command}`,
    fail: () => 'FAIL',
  },
}

const subjects = HARNESSES.flatMap((harness): Subject[] => {
  const how = SUBJECTS[harness.name]
  return how === undefined ? [] : [{ harness, ...how }]
})

test('every harness with a driver stands in this suite', () => {
  expect(HARNESSES.filter(({ driver }) => driver !== null).map(({ name }) => name)).toEqual(subjects.map(({ harness }) => harness.name))
})

describe.each(subjects)('$harness.name', ({ harness, say, callTool, run, fail }) => {
  let tree: SessionTree
  let driver: Driver
  let events: AsyncIterator<DriverEvent>
  let answer: CallTool

  const next = async (): Promise<DriverEvent> => {
    const result = await events.next()
    if (result.done === true) throw new Error('no further event')
    return result.value
  }
  /** The events up to the first that is one of these. */
  const upTo = async (...names: DriverEvent['event'][]): Promise<DriverEvent[]> => {
    const seen: DriverEvent[] = []
    do seen.push(await next())
    while (!names.some((name) => name === seen.at(-1)?.event))
    return seen
  }
  const turn = async (body: string): Promise<DriverEvent[]> => {
    driver.send(`Message m-1 from founder, class REQUEST:\n\n${body}`)
    return await upTo('turn-ended', 'exited')
  }
  const textOf = (seen: readonly DriverEvent[]): string => seen.flatMap((event) => (event.event === 'text' ? [event.text] : [])).join('\n')

  beforeEach(async () => {
    tree = await openSessionTree()
    answer = () => Promise.resolve({ ok: true, result: { answered: true } })
    const start = await harness.driver?.()
    if (start === undefined) throw new Error('no driver')
    driver = await start({
      session: tree.session,
      env: { PATH: '/usr/bin:/bin', HOME: tree.session.home, MARK: 'of-the-session' },
      callTool: (name, args) => answer(name, args),
      toolSocket: null,
      log: () => undefined,
    })
    events = driver.events[Symbol.asyncIterator]()
  })
  afterEach(async () => {
    await driver.close(1000)
    await tree[Symbol.asyncDispose]()
  })

  test('is ready, then idle', async () => {
    expect((await upTo('ready')).filter(({ event }) => event === 'turn-started')).toEqual([])
  })

  test('a turn: started, its text, ended well; then another', async () => {
    await upTo('ready')
    for (const word of ['one', 'two']) {
      const seen = await turn(say(word))
      expect(seen.filter(({ event }) => event !== 'usage' && event !== 'session-id')).toEqual([
        { event: 'turn-started' },
        { event: 'text', text: word },
        { event: 'turn-ended', ok: true, reason: null },
      ])
    }
  })

  test('may be sent the next message as soon as the end of a turn is read', async () => {
    await upTo('ready')
    for (let count = 0; count < 20; count++) expect(textOf(await turn(say(String(count))))).toBe(String(count))
  })

  test('a turn that fails says so itself', async () => {
    await upTo('ready')
    expect((await turn(fail())).at(-1)).toMatchObject({ event: 'turn-ended', ok: false })
    expect(textOf(await turn(say('goes on')))).toBe('goes on')
  })

  test('a tool call reaches the runner with its arguments, and its answer the harness', async () => {
    await upTo('ready')
    const asked: unknown[] = []
    answer = (name, args) => {
      asked.push([name, args])
      return Promise.resolve({ ok: true, result: { run: 'r0123456789ab' } })
    }
    const seen = await turn(callTool('launch', { instance: 'coder' }))
    expect(asked).toEqual([['launch', { instance: 'coder' }]])
    expect(textOf(seen)).toContain('r0123456789ab')
    expect(seen.map(({ event }) => event)).toEqual(expect.arrayContaining(['tool-call', 'tool-result']))
    expect(seen).toContainEqual({ event: 'tool-result', name: 'launch', ok: true })
  })

  test('a refused tool is an answer with its code, no failed turn', async () => {
    await upTo('ready')
    answer = () => Promise.resolve({ ok: false, error: 'capacity-full', text: 'the model family has no free slot' })
    const seen = await turn(callTool('launch', { instance: 'coder' }))
    expect(textOf(seen)).toContain('capacity-full')
    expect(seen.at(-1)).toMatchObject({ event: 'turn-ended', ok: true })
  })

  test('commands run in the workspace, with the variables of the session and no others', async () => {
    await upTo('ready')
    expect(textOf(await turn(run('pwd -P')))).toContain(tree.session.workspace)
    const env = textOf(await turn(run('env')))
    expect(env).toContain('MARK=of-the-session')
    expect(env).not.toMatch(/^(VITEST|NODE_ENV|npm_\w+)=/m)
  })

  test('4 MB of output arrive whole', async () => {
    await upTo('ready')
    expect(textOf(await turn(run('head -c 4194304 /dev/zero | tr "\\0" x')))).toHaveLength(4_194_304)
  })

  test('an interrupt ends the turn and what it runs, not the harness', async () => {
    await upTo('ready')
    driver.interrupt()
    driver.send(`Message m-1 from founder, class REQUEST:\n\n${run('echo $$ > pid; (sleep 600 & wait)')}`)
    await upTo('tool-call')
    driver.interrupt()
    expect((await upTo('turn-ended')).at(-1)).toMatchObject({ ok: false, reason: 'interrupted' })
    expect(textOf(await turn(say('still here')))).toBe('still here')
  })

  test('an interrupt does not wait for a tool', async () => {
    await upTo('ready')
    answer = () => new Promise(() => undefined)
    driver.send(`Message m-1 from founder, class REQUEST:\n\n${callTool('launch', { instance: 'coder' })}`)
    await upTo('tool-call')
    driver.interrupt()
    expect((await upTo('turn-ended')).at(-1)).toMatchObject({ ok: false, reason: 'interrupted' })
  })

  test('close when idle, twice: one expected exit, then no further event', async () => {
    await upTo('ready')
    await Promise.all([driver.close(1000), driver.close(1000)])
    expect(await upTo('exited')).toEqual([{ event: 'exited', code: 0, signal: null, expected: true }])
    expect((await events.next()).done).toBe(true)
    expect(() => driver.send('x')).toThrow()
  })

  test('close in mid-turn: the turn has its end before the exit', async () => {
    await upTo('ready')
    driver.send(`Message m-1 from founder, class REQUEST:\n\n${run('sleep 600')}`)
    await upTo('tool-call')
    await driver.close(1000)
    const seen = await upTo('exited')
    expect(seen.map(({ event }) => event).filter((event) => event === 'turn-ended' || event === 'exited')).toEqual(['turn-ended', 'exited'])
    expect(seen.at(-1)).toMatchObject({ expected: true })
  })
})

describe.each(HARNESSES)('the host side of $name', (harness) => {
  test('has names that are safe and says what is missing', async () => {
    expect(harness.name).toMatch(/^[a-z](-?[a-z0-9])*$/)
    for (const entry of harness.stateEntries) expect(entry).toMatch(/^[\w.-]+$/)
    expect(harness.needsSessionCredential).toBe(harness.whyNoCredential({}) !== null)
    const missing = await harness.locate({ bin: '/nonexistent' }, { PATH: '' })
    if (missing === null) expect(harness.whyMissing({ bin: '/nonexistent' }, {})).toContain('/nonexistent')
    else expect(missing.bin).toBeNull()
  })

  test('writes its files below the home', async () => {
    await using tree = await openSessionTree()
    for (const { path } of harness.configFiles(tree.session)) expect(path).toMatch(/^(?!\/)(?!.*\.\.)/)
  })
})
