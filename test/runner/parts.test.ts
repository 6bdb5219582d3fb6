import { Readable } from 'node:stream'
import { describe, expect, test } from 'vitest'
import { AppError } from '../../src/core/errors.ts'
import { createBroker } from '../../src/runner/broker.ts'
import { toCredentialEnv } from '../../src/runner/credentials.ts'
import { foreignDescriptors } from '../../src/runner/descriptors.ts'
import { createJournal } from '../../src/runner/journal.ts'
import { createRedact } from '../../src/runner/redact.ts'
import { readGiven } from '../../src/runner/stdin.ts'
import { createTranscript } from '../../src/runner/transcript.ts'

const CAP = 'a'.repeat(64)

describe('standard input', () => {
  const given = (...parts: readonly string[]): ReturnType<typeof readGiven> => readGiven(Readable.from(parts.map((part) => Buffer.from(part))))

  test('capability, credentials, in any pieces, with or without EOF', async () => {
    const whole = await given(CAP.slice(0, 9), `${CAP.slice(9)}\n{"cred`, 'entials":[]}\n')
    expect([whole?.capability.reveal(), whole?.credentials]).toEqual([CAP, '{"credentials":[]}'])
    expect((await given(CAP))?.credentials).toBe('')
    const open = new Readable({ read: () => undefined })
    open.push(`${CAP}\n{}\n`)
    expect((await readGiven(open))?.credentials).toBe('{}')
  })

  test.each([[''], ['\n'], [CAP.slice(1)], [CAP.toUpperCase()]])('%j is no capability', async (text) => {
    expect(await given(text)).toBeNull()
  })

  test('an error is EOF', async () => {
    const broken = (text: string): Readable =>
      Readable.from(
        (async function* () {
          yield Buffer.from(text)
          await Promise.reject(new Error('EIO'))
        })(),
      )
    expect(await readGiven(broken(''))).toBeNull()
    expect((await readGiven(broken(`${CAP}\n`)))?.capability.reveal()).toBe(CAP)
  })

  test('the capability prints as ***', async () => {
    expect(JSON.stringify(await given(CAP))).not.toContain(CAP)
  })
})

describe('credentials', () => {
  const now = Date.parse('2026-06-01T00:00:00Z')
  const one = { name: 'tracker', env: 'TOKEN', value: 'v', expires: null }

  test('become variables; an expiry in the future is none', () => {
    expect(toCredentialEnv({ credentials: [one, { ...one, env: 'B', expires: '2026-06-02' }] }, now)).toEqual({ TOKEN: 'v', B: 'v' })
  })

  test('each that is missing or expired is named', () => {
    const credentials = [
      { ...one, name: 'a', value: null },
      { ...one, name: 'b', value: '' },
      { ...one, name: 'c', expires: '2026-06-01' },
      { ...one, name: 'd', expires: 'soon' },
      one,
    ]
    expect(() => toCredentialEnv({ credentials }, now)).toThrow(/a .* missing; .*b .* missing; .*c has expired on 2026-06-01; .*d has no valid expiry/)
    expect(() => toCredentialEnv({ credentials }, now)).not.toThrow(/tracker/)
  })
})

describe('descriptors', () => {
  test("Node's own are known; a directory, a file, a socket, one end of a pipe are foreign", () => {
    const own = [
      { fd: 0, target: 'socket:[1]' },
      { fd: 3, target: 'anon_inode:[eventpoll]' },
      { fd: 4, target: 'pipe:[7]' },
      { fd: 5, target: 'pipe:[7]' },
      { fd: 6, target: '/dev/null' },
    ]
    const foreign = ['/home/ada', '/tmp/file', 'socket:[2]', 'pipe:[8]', '/dev/tty'].map((target, index) => ({ fd: 10 + index, target }))
    expect(foreignDescriptors(own)).toEqual([])
    expect(foreignDescriptors([...own, ...foreign])).toEqual(foreign)
  })
})

describe('runner.log', () => {
  test('one line a word, without secrets', () => {
    const lines: string[] = []
    const journal = createJournal({ write: (text) => lines.push(text), now: () => 0 })
    journal.redactWith(createRedact(['secret', 'secret-and-more', 'x']))
    journal.write('a secret-and-more\nsecret box')
    expect(lines).toEqual(['1970-01-01T00:00:00.000Z a *** *** box\n'])
  })
})

describe('the broker', () => {
  const lost = (): Promise<never> => Promise.reject(new AppError('host-not-running', ''))

  test('what may be said twice goes on over a new connection; what may not is host-not-running', async () => {
    let connections = 0
    const connect = (): Promise<{ call: () => Promise<unknown>; close: () => undefined }> => {
      connections++
      const isFirst = connections % 2 === 1
      return Promise.resolve({ call: () => (isFirst ? lost() : Promise.resolve('answer')), close: () => undefined })
    }
    const broker = createBroker({ connect, tries: 3, retryMs: 0 })
    expect(await broker.call('message.receive', {})).toBe('answer')
    connections = 0
    const other = createBroker({ connect, tries: 3, retryMs: 0 })
    await expect(other.callOnce('message.send', {})).rejects.toMatchObject({ code: 'host-not-running' })
    expect(connections).toBe(1)
  })

  test('all callers share the tries, and the end', async () => {
    let tried = 0
    const connect = (): Promise<never> => {
      tried++
      return lost()
    }
    const broker = createBroker({ connect, tries: 30, retryMs: 0 })
    const ends = await Promise.allSettled([broker.call('a', {}), broker.callOnce('b', {}), broker.reached()])
    for (const end of ends)
      expect(end).toMatchObject({ status: 'rejected', reason: { reason: 'broker-unreachable', message: 'broker unreachable after 30 tries' } })
    expect(tried).toBe(30)
  })
})

describe('the transcript', () => {
  const collect = (
    append: (entries: readonly object[]) => Promise<unknown> = () => Promise.resolve(),
  ): { batches: (readonly object[])[]; logged: string[]; transcript: ReturnType<typeof createTranscript> } => {
    const batches: (readonly object[])[] = []
    const logged: string[] = []
    const transcript = createTranscript({
      append: async (entries) => {
        batches.push(entries)
        await append(entries)
      },
      redact: createRedact(['secret']),
      log: (line) => logged.push(line),
    })
    return { batches, logged, transcript }
  }

  test('what is added together goes in as few batches as it takes, in order', async () => {
    const { batches, transcript } = collect()
    for (let index = 0; index < 500; index++) transcript.add({ event: `e${String(index)}` })
    await transcript.flush()
    expect(batches.map((batch) => batch.length)).toEqual([200, 200, 100])
    expect(batches.flat()).toEqual(Array.from({ length: 500 }, (_, index) => ({ event: `e${String(index)}` })))
  })

  test('a long text is split between characters, a frame holds each batch, objects become text, secrets go', async () => {
    const { batches, transcript } = collect()
    const entry = { event: 'text', text: '\u0000😀'.repeat(300_000), input: { deep: [['secret']] } }
    transcript.add(entry)
    await transcript.flush()
    const entries = batches.flat() as { text: string; input: string }[]
    expect(entries.map(({ text }) => text).join('')).toBe(entry.text)
    expect(entries.every(({ text }) => Buffer.from(text).toString() === text)).toBe(true)
    expect(entries[0]?.input).toBe('{"deep":[["***"]]}')
    for (const batch of batches) expect(Buffer.byteLength(JSON.stringify(batch))).toBeLessThan(500 * 1024)
  })

  test('a host that refuses it costs the entries and one line, not the session', async () => {
    const { logged, transcript } = collect(() => Promise.reject(new AppError('disk-full', 'no room')))
    transcript.add({ event: 'a' })
    transcript.add({ event: 'b' })
    await transcript.flush()
    expect(logged).toEqual(['the transcript has gaps: no room'])
  })

  test.each([...Array(8).keys()])('what is added %i ticks after an answer of the host is sent and waited for', async (ticks) => {
    let answer: () => void = () => undefined
    const answered = new Promise<void>((resolve) => (answer = resolve))
    const { batches, transcript } = collect(() => answered)
    transcript.add({ event: 'first' })
    const later = async (): Promise<void> => {
      await answered
      for (let tick = 0; tick < ticks; tick++) await Promise.resolve()
      transcript.add({ event: 'last' })
    }
    const added = later()
    answer()
    await added
    await transcript.flush()
    expect(batches.flat()).toEqual([expect.objectContaining({ event: 'first' }), expect.objectContaining({ event: 'last' })])
  })
})
