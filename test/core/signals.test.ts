import { getEventListeners } from 'node:events'
import { describe, expect, test } from 'vitest'
import { anySignal } from '../../src/core/any-signal.ts'
import { inTime } from '../../src/core/in-time.ts'

const never = new Promise<never>(() => undefined)
const late = (): Error => new Error('late')
const listeners = (signal: AbortSignal): number => getEventListeners(signal, 'abort').length

describe('a signal of several', () => {
  test.each([0, 1])('aborts with the reason of the one that aborts: number %i', (which) => {
    const sources = [new AbortController(), new AbortController()]
    using either = anySignal(sources.map(({ signal }) => signal))
    expect(either.signal.aborted).toBe(false)
    sources[which]?.abort(new Error('why'))
    expect(either.signal.reason).toEqual(new Error('why'))
  })

  test('of one that has aborted it has, too', () => {
    using either = anySignal([new AbortController().signal, AbortSignal.abort('why')])
    expect(either.signal.reason).toBe('why')
  })

  test('it leaves nothing in its sources, and hears no more of them', () => {
    const source = new AbortController()
    const either = anySignal([source.signal])
    expect(listeners(source.signal)).toBe(1)
    either[Symbol.dispose]()
    expect(listeners(source.signal)).toBe(0)
    source.abort()
    expect(either.signal.aborted).toBe(false)
  })
})

describe('work in time', () => {
  test('is what it comes to, and leaves nothing in the signal', async () => {
    const { signal } = new AbortController()
    const work = inTime(Promise.resolve(7), { timeoutMs: 60_000, signal }, late)
    expect(listeners(signal)).toBe(1)
    expect(await work).toBe(7)
    expect(listeners(signal)).toBe(0)
    await expect(inTime(Promise.reject(new Error('bad')), { timeoutMs: 60_000, signal }, late)).rejects.toThrow('bad')
  })

  test('that is not done at the deadline is late; one that is cancelled tells why, at once if it was before', async () => {
    await expect(inTime(never, { timeoutMs: 1 }, late)).rejects.toThrow('late')
    const cancel = new AbortController()
    const work = inTime(never, { timeoutMs: 60_000, signal: cancel.signal }, late)
    cancel.abort(new Error('enough'))
    await expect(work).rejects.toThrow('enough')
    // what fails behind it is nobody's
    await expect(inTime(Promise.reject(new Error('bad')), { timeoutMs: 60_000, signal: AbortSignal.abort(new Error('enough')) }, late)).rejects.toThrow()
  })
})
