import { getEventListeners } from 'node:events'
import { expect, test } from 'vitest'
import { createLauncher } from '../../src/daemon/launcher.ts'
import type { launchSession } from '../../src/launch/launch.ts'
import type { LaunchRow } from '../../src/protocol/rows.ts'
import { openWorld, order } from '../launch/world.ts'

interface Started {
  readonly admit: (run: string) => void
  readonly become: (run: string) => void
  readonly refuse: () => void
  readonly signal: AbortSignal
}

/** Launches that go on as the test says. */
function world(stopping = new AbortController().signal) {
  const started: Started[] = []
  const start: typeof launchSession = (deps) =>
    new Promise((resolve, reject) => {
      const refuse = (): void => reject(new Error('refused'))
      const become = (run: string): void => resolve({ run } as LaunchRow)
      started.push({ admit: (run) => deps.admitted?.(run as never), become, refuse, signal: deps.stopping })
    })
  const launcher = createLauncher({ ...openWorld().deps, stopping }, start)
  const launch = (): Started => {
    launcher.launch(order).catch(() => undefined)
    const last = started.at(-1)
    if (last === undefined) throw new Error('nothing was started')
    return last
  }
  return { launcher, launch }
}

test('the launch of a run is cancelled, and no other order for its instance', async () => {
  const { launcher, launch } = world()
  const [other, meant] = [launch(), launch()]
  expect(await launcher.cancelLaunch('r2')).toBe(false)
  meant.admit('r2')
  const cancelled = launcher.cancelLaunch('r2')
  expect([other.signal.aborted, meant.signal.aborted]).toEqual([false, true])
  meant.refuse()
  expect(await cancelled).toBe(true)
  other.refuse()
  await launcher.launchesSettled()
})

test('a launch that became a session all the same was not cancelled', async () => {
  const { launcher, launch } = world()
  const meant = launch()
  meant.admit('r1')
  const cancelled = launcher.cancelLaunch('r1')
  meant.become('r1')
  expect(await cancelled).toBe(false)
  expect(await launcher.cancelLaunch('r1')).toBe(false)
})

test('all launches are cancelled, also before they have a run, and none that comes later', async () => {
  const { launcher, launch } = world()
  const all = [launch(), launch()]
  all[1]?.admit('r2')
  launcher.cancelLaunches()
  expect(all.map(({ signal }) => signal.aborted)).toEqual([true, true])
  const later = launch()
  expect(later.signal.aborted).toBe(false)
  for (const { refuse } of [...all, later]) refuse()
  await launcher.launchesSettled()
})

/** What a signal keeps of those who wait for it, by whatever means. */
const kept = (signal: AbortSignal): number => {
  const dependants = Object.getOwnPropertySymbols(signal).find(({ description }) => description === 'kDependantSignals')
  const set = dependants === undefined ? undefined : (signal as unknown as Record<symbol, { readonly size: number }>)[dependants]
  return getEventListeners(signal, 'abort').length + (set?.size ?? 0)
}

test('a launch that is over leaves nothing in the signal of the host, which lives on', async () => {
  const { signal } = new AbortController()
  const { launcher, launch } = world(signal)
  const [one, other] = [launch(), launch()]
  expect(kept(signal)).toBe(2)
  one.refuse()
  other.become('r1')
  await launcher.launchesSettled()
  expect(kept(signal)).toBe(0)
})
