import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { expect, onTestFinished, test } from 'vitest'
import { bootId, startTimeOf } from '../../src/core/proc.ts'
import { leftRuns, recover } from '../../src/daemon/recovery.ts'
import type { Store } from '../../src/store/open.ts'
import { openWorld as openTrees } from '../envroot/world.ts'
import { openWorld } from '../launch/world.ts'
import { nextRun, open, scratch, starting } from '../store/scratch.ts'

async function startSleeper(): Promise<{ readonly pid: number; readonly start: string; readonly end: () => Promise<void> }> {
  const child = spawn('/bin/sleep', ['600'], { stdio: 'ignore' })
  await once(child, 'spawn')
  const gone = once(child, 'exit')
  const end = async (): Promise<void> => {
    child.kill('SIGKILL')
    await gone
  }
  onTestFinished(end)
  const pid = child.pid ?? 0
  return { pid, start: startTimeOf(pid) ?? '', end }
}

/** A run that was started with this pid 1. */
function insert(store: Store, instance: string, init: { readonly pid: number; readonly start: string }, boot = bootId()): string {
  const run = nextRun()
  store.writeNow(() => {
    store.sessions.insertStarting(starting(run, { instance }))
    store.sessions.setSpawned(run, { monitor: init, init, bootId: boot })
    store.sessions.setRunning(run)
  })
  return run
}

test('an ended run is left only if its pid 1 lives, in this boot', async () => {
  const store = open(scratch())
  const [alive, dead] = [await startSleeper(), await startSleeper()]
  const runs = [insert(store, 'a', alive), insert(store, 'b', dead), insert(store, 'c', alive, 'another boot'), insert(store, 'd', dead)]
  for (const run of runs.slice(0, 3)) store.writeNow(() => store.sessions.setEnded(run, { reason: 'killed', exitCode: null, signal: 'SIGKILL' }))
  await dead.end()
  const left = (): readonly string[] => leftRuns(store).map(({ run }) => run)
  expect(left()).toEqual([runs[3], runs[0]])
  await alive.end()
  expect(left()).toEqual([runs[3]])
})

test('what a cut-off launch left and cannot be removed stays: it keeps neither this start nor an end of a run', async () => {
  const { deps } = openWorld()
  const trees = await openTrees()
  const store = open(scratch())
  const [cutOff, lost] = [nextRun(), nextRun()]
  store.writeNow(() => {
    store.sessions.insertStarting(starting(cutOff, { instance: 'coder' }))
    store.sessions.insertStarting(starting(lost, { instance: 'pm' }))
    store.sessions.setRunning(lost)
  })
  trees.write(`${trees.root}/d/launches/acme/${cutOff}`, 'no directory')
  const warned: unknown[] = []
  const log = { ...deps.log, warn: (_fields: object, what: string) => warned.push(what) } as unknown as typeof deps.log
  const said: string[] = []
  await recover({
    ...deps,
    log,
    store,
    broker: undefined as never,
    launchBroker: deps.broker,
    dataRoot: trees.dataRoot,
    envRoots: trees.deps,
    pm: null,
    say: (line) => said.push(line),
  })
  expect(warned).toEqual(['the directory of a launch that was cut off stays'])
  expect(said).toEqual([`run ${lost} (pm) from an earlier host ended: host-lost`])
  expect([store.sessions.live(), store.sessions.get(cutOff)]).toEqual([[], null])
})
