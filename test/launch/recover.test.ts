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

test('a launch that cannot be undone keeps nobody from an end, and a run that had its end is named as such', async () => {
  const { deps } = openWorld()
  const store = open(scratch())
  const [cutOff, lost, ended] = [nextRun(), nextRun(), nextRun()]
  store.writeNow(() => {
    for (const [run, instance] of [
      [cutOff, 'coder'],
      [lost, 'pm'],
      [ended, 'tester'],
    ] as const)
      store.sessions.insertStarting(starting(run, { instance }))
    for (const run of [lost, ended]) store.sessions.setRunning(run)
    store.launchLog.appendEnd({ run: ended, instance: 'tester', fields: { reason: 'killed', exitCode: null, signal: 'SIGKILL', durationMs: 1, task: null } })
    store.sessions.setEnded(ended, { reason: 'killed', exitCode: null, signal: 'SIGKILL' })
  })
  const said: string[] = []
  const told: string[] = []
  const recovered = recoverRuns({
    ...deps,
    store,
    left: [...store.sessions.listAll()],
    killLeftover: () => Promise.resolve(),
    waitForLock: ({ run }) => (run === lost ? Promise.reject(new Error('EIO: flock')) : Promise.resolve()),
    removeTraces: () => Promise.reject(new Error('EACCES: rmdir')),
    tell: (runs) => told.push(...runs.map(({ run }) => run)),
    say: (line) => said.push(line),
  })
  await expect(recovered).rejects.toThrow('EACCES')
  expect(said.sort()).toEqual([`run ${ended} (tester) from an earlier host was already ended`, `run ${lost} (pm) from an earlier host ended: host-lost`].sort())
  expect([told, store.sessions.live().map(({ run }) => run), store.sessions.get(ended)?.reason]).toEqual([[lost], [cutOff], 'killed'])
})
