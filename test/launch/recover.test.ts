import { expect, test } from 'vitest'
import { recoverRuns } from '../../src/launch/recover.ts'
import { open, nextRun, scratch, starting } from '../store/scratch.ts'
import { openWorld } from './world.ts'

test('a leftover that does not go keeps no host from starting: each run has its end', async () => {
  const { deps } = openWorld()
  const store = open(scratch())
  const [stuck, other] = [nextRun(), nextRun()]
  for (const [run, instance] of [
    [stuck, 'coder'],
    [other, 'tester'],
  ] as const) {
    store.writeNow(() => store.sessions.insertStarting(starting(run, { instance })))
    store.writeNow(() => store.sessions.setRunning(run))
  }
  const waited: string[] = []
  await recoverRuns({
    ...deps,
    store,
    left: store.sessions.live(),
    killLeftover: ({ run }) => (run === stuck ? Promise.reject(new Error('process 7 of an earlier host does not go')) : Promise.resolve()),
    waitForLock: ({ run }) => Promise.resolve(void waited.push(run)),
    removeTraces: () => Promise.resolve(),
    tell: () => undefined,
    say: () => undefined,
  })
  expect([waited, store.sessions.live(), store.sessions.get(stuck)?.reason]).toEqual([[other], [], 'host-lost'])
})
