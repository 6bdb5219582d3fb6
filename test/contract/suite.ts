import { dirname } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { CallTool, Driver, DriverEvent, DriverOptions, Harness } from '../../src/harness/contract.ts'

/** A place in which a driver can be started. */
export interface Stage extends AsyncDisposable {
  readonly options: Pick<DriverOptions, 'session' | 'env' | 'toolSocket'>
}

/** How one harness is made to do something: the text of a message, in whatever its (scripted) model understands. */
export interface Subject {
  readonly harness: Harness
  /** Its tools are answered by `callTool`. */
  readonly open: (callTool: CallTool) => Promise<Stage>
  readonly say: (text: string) => string
  readonly callTool: (name: string, args: object) => string
  readonly run: (command: string) => string
  /** An answer of that many `x`. */
  readonly big: (bytes: number) => string
  readonly fail: () => string
}

export const PATH = [dirname(process.execPath), '/usr/bin', '/bin'].join(':')

/** The contract of src/harness/contract.ts, as every driver keeps it. */
export const keepsTheContract = ({ harness, open, say, callTool, run, big, fail }: Subject): void => {
  describe(`the contract: ${harness.name}`, () => {
    let stage: Stage
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
      answer = () => Promise.resolve({ ok: true, result: { answered: true } })
      stage = await open((name, args) => answer(name, args))
      const start = await harness.driver()
      driver = await start({ ...stage.options, callTool: (name, args) => answer(name, args), log: () => undefined })
      events = driver.events[Symbol.asyncIterator]()
    })
    afterEach(async () => {
      await driver.close(1000)
      await stage[Symbol.asyncDispose]()
    })

    test('is ready, then idle', async () => {
      expect((await upTo('ready')).filter(({ event }) => event === 'turn-started')).toEqual([])
    })

    test('a turn: started, its text, ended well; then another', async () => {
      await upTo('ready')
      for (const word of ['one', 'two']) {
        const seen = await turn(say(word))
        expect(seen.filter(({ event }) => event !== 'usage' && event !== 'session-id')).toMatchObject([
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
      expect(textOf(await turn(run('pwd -P')))).toContain(stage.options.session.workspace)
      const env = textOf(await turn(run('env')))
      expect(env).toContain('MARK=of-the-session')
      expect(env).not.toMatch(/^(VITEST|NODE_ENV|npm_\w+)=/m)
    })

    test('4 MB of output arrive whole', async () => {
      await upTo('ready')
      expect(textOf(await turn(big(4_194_304)))).toBe('x'.repeat(4_194_304))
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
}
