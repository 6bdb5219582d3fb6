import { expect, test } from 'vitest'
import { AppError } from '../../src/core/errors.ts'
import { launchSession } from '../../src/launch/launch.ts'
import { openWorld, order } from './world.ts'

test('a launch that nothing hinders is a live session', async () => {
  const { deps, store, live, seen } = openWorld()
  const { run } = await launchSession(deps, order)
  expect([store.sessions.get(run)?.state, live.has(run), seen]).toEqual(['running', true, []])
})

test('a launch that is cancelled as the last thing before its commit is undone', async () => {
  const { deps, store, seen } = openWorld()
  const cancel = new AbortController()
  const failpoint: typeof deps.failpoint = (name) => {
    if (name === 'launch.commit') cancel.abort(new AppError('interrupted', 'it was stopped'))
  }
  await expect(launchSession({ ...deps, failpoint, stopping: cancel.signal }, order)).rejects.toMatchObject({ code: 'interrupted' })
  expect([store.sessions.live(), seen]).toEqual([[], ['killed', 'directory removed', 'claim undone']])
})
