import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createRunTimers } from '../../src/launch/timers.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const limits = { turnTimeoutMs: 1000, idleTimeoutMs: 5000, runTimeoutMs: 60_000 }

function watch(more: (reason: string) => number | null = () => null, own: Partial<typeof limits> | Record<string, null> = {}) {
  const over: string[] = []
  const timers = createRunTimers({ ...limits, ...own }, (reason) => {
    over.push(reason)
    return more(reason)
  })
  return { over, timers }
}

test('a turn that takes too long is over; one that ends in time is not', () => {
  const slow = watch()
  slow.timers.turnStarted()
  vi.advanceTimersByTime(1000)
  expect(slow.over).toEqual(['turn-timeout'])
  const quick = watch()
  quick.timers.turnStarted()
  vi.advanceTimersByTime(999)
  quick.timers.turnEnded()
  vi.advanceTimersByTime(999)
  expect(quick.over).toEqual([])
})

test('what is delivered while a turn runs gives it no more time; the next turn has all of it', () => {
  const busy = watch()
  busy.timers.turnStarted()
  vi.advanceTimersByTime(900)
  busy.timers.turnStarted()
  vi.advanceTimersByTime(100)
  expect(busy.over).toEqual(['turn-timeout'])
  const next = watch()
  next.timers.turnStarted()
  vi.advanceTimersByTime(900)
  next.timers.turnEnded()
  next.timers.turnStarted()
  vi.advanceTimersByTime(999)
  expect(next.over).toEqual([])
  vi.advanceTimersByTime(1)
  expect(next.over).toEqual(['turn-timeout'])
})

test('a session without a turn for too long is idle; a turn is no idleness', () => {
  const { over, timers } = watch(undefined, { turnTimeoutMs: 10_000 })
  vi.advanceTimersByTime(4999)
  timers.turnStarted()
  vi.advanceTimersByTime(5000)
  expect(over).toEqual([])
  timers.turnEnded()
  vi.advanceTimersByTime(5000)
  expect(over).toEqual(['idle-timeout'])
})

test('a run that lasts too long is over, whatever it does; without limits nothing is', () => {
  const busy = watch(undefined, { turnTimeoutMs: 100_000 })
  busy.timers.turnStarted()
  vi.advanceTimersByTime(60_000)
  expect(busy.over).toEqual(['run-timeout'])
  const free = watch(undefined, { idleTimeoutMs: null, runTimeoutMs: null })
  vi.advanceTimersByTime(1e9)
  expect(free.over).toEqual([])
})

test('only the first is told, and none after the end', () => {
  const { over, timers } = watch()
  timers.turnStarted()
  vi.advanceTimersByTime(1e6)
  expect(over).toEqual(['turn-timeout'])
  const ended = watch()
  ended.timers.close()
  vi.advanceTimersByTime(1e6)
  expect(ended.over).toEqual([])
})

test('a turn that waits for its provider goes on until then', () => {
  let limited: number | null = 3000
  const { over, timers } = watch(() => limited)
  timers.turnStarted()
  vi.advanceTimersByTime(1000)
  limited = null
  vi.advanceTimersByTime(2999)
  expect(over).toEqual(['turn-timeout'])
  vi.advanceTimersByTime(1)
  expect(over).toEqual(['turn-timeout', 'turn-timeout'])
})
