import { expect, test, vi } from 'vitest'
import { createTurns } from '../../src/daemon/turns.ts'

const HOUR = 3_600_000

function turns(perHour: number) {
  const clock = { at: 0 }
  const poked: string[] = []
  const started: string[] = []
  const made = createTurns({
    clock: { now: () => clock.at, monotonic: () => clock.at },
    turnsPerHour: () => perHour,
    poke: (instance) => void poked.push(instance),
    onStarted: (run) => void started.push(run),
  })
  return { ...made, clock, poked, started }
}

test('a pause holds back every delivery to that instance and to no other, until it is resumed', () => {
  const all = turns(60)
  all.pause('coder')
  expect([all.room('coder', 'r1'), all.room('pm', 'r2'), all.isPaused('coder')]).toEqual([0, 60, true])
  all.resume('coder')
  expect([all.room('coder', 'r1'), all.poked]).toEqual([60, ['coder']])
})

test('a drain holds back everybody', () => {
  const all = turns(60)
  expect(all.room('pm', 'r1')).toBe(60)
  all.drain()
  expect(all.room('pm', 'r1')).toBe(0)
})

test('an hour takes so many turns of a run; the next may begin when the first is an hour old, and is then asked for', () => {
  vi.useFakeTimers()
  try {
    const all = turns(2)
    for (const [at, left] of [
      [0, 2],
      [1000, 1],
    ] as const) {
      all.clock.at = at
      expect(all.room('coder', 'r1')).toBe(left)
      all.delivered('coder', 'r1', 1)
    }
    all.clock.at = 2000
    expect([all.room('coder', 'r1'), all.room('coder', 'r2')]).toEqual([0, 2])
    expect(all.waitingUntil('r1')).toBe(HOUR)
    expect(all.poked).toEqual([])
    all.clock.at = HOUR
    vi.advanceTimersByTime(HOUR - 2000)
    expect([all.poked, all.room('coder', 'r1'), all.waitingUntil('r1')]).toEqual([['coder'], 1, null])
    expect(all.started).toEqual(['r1', 'r1'])
  } finally {
    vi.useRealTimers()
  }
})
