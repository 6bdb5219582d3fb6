import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { silentLog } from '../../src/core/log.ts'
import { createLateEnds } from '../../src/launch/late-ends.ts'

/** A store whose changes are the test's to make, and ends that fail as often as told. */
function world(failures: number) {
  const listeners = new Set<() => void>()
  const recorded: string[] = []
  let left = failures
  const ends = createLateEnds(
    {
      log: silentLog,
      store: {
        onChange: (listener: () => void) => {
          listeners.add(listener)
          return () => void listeners.delete(listener)
        },
      },
    },
    1000,
  )
  const change = (): void => {
    for (const listener of listeners) listener()
  }
  const record = (run: string) => (): void => {
    if (left-- > 0) throw new Error('no room')
    recorded.push(run)
    change()
  }
  return { ends, recorded, change, record, listeners }
}

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

test('an end that could not be written is tried again after a while, until it is written, once', () => {
  const { ends, recorded, record } = world(2)
  ends.keepTrying('r1', record('r1'))
  vi.advanceTimersByTime(2500)
  expect(recorded).toEqual([])
  vi.advanceTimersByTime(60_000)
  expect([recorded, vi.getTimerCount()]).toEqual([['r1'], 0])
  ends.close()
})

test('a change of the store shows that there is room: it is tried at once', () => {
  const { ends, recorded, record, change } = world(0)
  ends.keepTrying('r1', record('r1'))
  ends.keepTrying('r2', record('r2'))
  change()
  expect(recorded).toEqual([])
  vi.advanceTimersByTime(1)
  expect(recorded).toEqual(['r1', 'r2'])
  ends.close()
})

test('closing tries a last time and leaves nothing that goes on', () => {
  const { ends, recorded, record, listeners } = world(0)
  ends.keepTrying('r1', record('r1'))
  ends.close()
  expect([recorded, listeners.size, vi.getTimerCount()]).toEqual([['r1'], 0, 0])
  const other = world(9)
  other.ends.keepTrying('r2', other.record('r2'))
  other.ends.close()
  expect([other.recorded, vi.getTimerCount()]).toEqual([[], 0])
})
