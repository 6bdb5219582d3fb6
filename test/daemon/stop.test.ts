import { expect, test } from 'vitest'
import { silentLog } from '../../src/core/log.ts'
import type { Host } from '../../src/daemon/host.ts'
import { stopHost, type StopOptions } from '../../src/daemon/stop.ts'
import { createStopSignals } from '../../src/daemon/stop-signals.ts'

interface Later {
  readonly promise: Promise<void>
  readonly resolve: () => void
}

function later(): Later {
  let resolve: () => void = () => undefined
  const promise = new Promise<void>((done) => (resolve = done))
  return { promise, resolve }
}

/** A host with one session, whose parts end when the test says so, and what was done to it, in order. */
function world() {
  const done: string[] = []
  const signals = createStopSignals()
  const [launches, git] = [later(), later()]
  const runs = new Set(['r1'])
  const messages: string[] = []
  let change: () => void = () => undefined
  for (const name of ['closing', 'stopping', 'hurry'] as const) signals[name].signal.addEventListener('abort', () => done.push(name))
  const host = {
    ...signals,
    deps: { log: silentLog },
    launching: { failpoint: () => undefined },
    launchesSettled: () => launches.promise.then(() => done.push('launches')),
    git: { settled: () => git.promise.then(() => done.push('git')) },
    turns: { drain: () => done.push('drain') },
    store: { messages: { givenTo: () => messages }, onChange: (listener: () => void) => ((change = listener), () => undefined) },
    live: {
      runs: () => [...runs],
      stop: (run: string, ms: number) => {
        done.push(`stop ${run} in ${String(ms)}`)
        runs.delete(run)
        return Promise.resolve()
      },
    },
  }
  const step = (name: string) => (): Promise<void> => Promise.resolve(void done.push(name))
  const sockets = { closeDoors: step('doors'), [Symbol.asyncDispose]: step('sockets') }
  const stop = (options: StopOptions = {}): Promise<void> =>
    stopHost(host as unknown as Host, sockets, { timeoutMs: 7, ...options }, () => void done.push('drained'))
  return { done, signals, launches, git, messages, changed: () => change(), stop }
}

test('launches end at once, all else when what runs has had its time; then the doors, launches, sessions and pushes, and the bus last', async () => {
  const { done, launches, git, messages, changed, stop } = world()
  messages.push('m1')
  launches.resolve()
  git.resolve()
  const stopped = stop({ drainMs: 60_000 })
  expect(done).toEqual(['closing', 'drain'])
  messages.pop()
  changed()
  await stopped
  expect(done).toEqual(['closing', 'drain', 'drained', 'stopping', 'doors', 'launches', 'stop r1 in 7', 'git', 'sockets'])
})

test.each(['before it begins', 'while it drains'])('a stop that is hurried %s waits for no turn, no launch and no push', async (when) => {
  const { done, signals, messages, stop } = world()
  messages.push('m1')
  if (when === 'before it begins') signals.hurry.abort()
  const stopped = stop({ drainMs: 60_000 })
  signals.hurry.abort()
  await stopped
  expect(done.filter((step) => step !== 'hurry')).toEqual(['closing', 'drain', 'drained', 'stopping', 'doors', 'stop r1 in 0', 'sockets'])
})

test('a stop that is hurried while launches are undone waits for them no longer', async () => {
  const { done, signals, stop } = world()
  const stopped = stop()
  await new Promise(setImmediate)
  expect(done.at(-1)).toBe('doors')
  signals.hurry.abort()
  await stopped
  expect(done.at(-1)).toBe('sockets')
})
