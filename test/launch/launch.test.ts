import { once } from 'node:events'
import { expect, test } from 'vitest'
import { AppError } from '../../src/core/errors.ts'
import { launchSession } from '../../src/launch/launch.ts'
import { resolveCredentials } from '../../src/launch/credentials.ts'
import { openWorld, order, type World } from './world.ts'

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

test('a refusal that cannot be written is told, and its row goes once there is room', async () => {
  const { deps, store, live } = openWorld()
  let full = false
  const writeNow: typeof deps.store.writeNow = (act, options) => {
    if (full) throw new AppError('disk-full', 'no room')
    return store.writeNow(act, options)
  }
  const prepare = (): Promise<never> => {
    full = true
    return Promise.reject(new AppError('checkout-failed', 'no clone'))
  }
  const onFullDisk = { ...deps, store: { ...store, writeNow }, prepare }
  await expect(launchSession(onFullDisk, order)).rejects.toMatchObject({ code: 'checkout-failed' })
  expect(store.sessions.live()).toHaveLength(1)
  full = false
  live.close() // the last try of all
  expect(store.sessions.live()).toEqual([])
  expect([...store.launchLog.list()].map(({ event }) => event)).toEqual(['refused'])
})

test('what cannot be handed over after the commit is the end of the run, and no failure of its launch', async () => {
  const { deps, store, live, seen } = openWorld()
  const capabilities = {
    ...deps.capabilities,
    issue: () => {
      throw new Error('none is left')
    },
  }
  const { run } = await launchSession({ ...deps, capabilities }, order)
  await live.ended(run)
  expect([store.sessions.get(run)?.reason, seen]).toEqual(['failed', ['killed', 'ended failed', 'directory closed', 'claim closed']])
})

test('a credential file that opens and cannot be read is a credential that is not there', () => {
  // reading its first byte is EIO: proc_pid_mem(5)
  const { credentials } = resolveCredentials({ key: { env: null, file: '/proc/self/mem', expires: null } }, {})
  expect(credentials).toEqual([{ name: 'key', env: 'KEY', value: null, expires: null }])
})

test('a run whose transcript cannot be closed ends as any other: its env root is free, and nobody holds it for live', async () => {
  const { deps, store, live, seen } = openWorld()
  const openRunDirectory: typeof deps.openRunDirectory = (...of) => ({
    ...deps.openRunDirectory(...of),
    close: () => {
      throw new Error('EIO: close')
    },
  })
  const { run } = await launchSession({ ...deps, openRunDirectory }, order)
  await live.kill(run)
  expect([store.sessions.get(run)?.state, live.has(run), seen]).toEqual(['ended', false, ['killed', 'ended killed', 'claim closed']])
})

test('a sandbox that fails at once ends the preparation, and is what is told', async () => {
  const { deps, seen } = openWorld()
  const openSandbox = (): Promise<never> => Promise.reject(new AppError('spawn-failed', 'bwrap failed'))
  const prepare: typeof deps.prepare = async (_workspace, { signal }) => {
    await once(signal, 'abort')
    seen.push('preparation ended')
    throw new AppError('interrupted', 'cancelled')
  }
  await expect(launchSession({ ...deps, openSandbox, prepare }, order)).rejects.toMatchObject({ code: 'spawn-failed' })
  expect(seen).toEqual(['preparation ended', 'directory removed', 'claim undone'])
})

test('a workspace that cannot be prepared ends the start of the sandbox, and is what is told', async () => {
  const { deps } = openWorld()
  const openSandbox: typeof deps.openSandbox = async ({ signal }) => {
    if (!signal.aborted) await once(signal, 'abort')
    throw signal.reason
  }
  const prepare = (): Promise<never> => Promise.reject(new AppError('checkout-failed', 'no clone'))
  await expect(launchSession({ ...deps, openSandbox, prepare }, order)).rejects.toMatchObject({ code: 'checkout-failed' })
})

test('what an earlier conversation left is removed after everything that may refuse the launch, and before the session exists', async () => {
  const tidied = async (change: (deps: World['deps']) => Partial<World['deps']>): Promise<unknown> => {
    const { deps, store } = openWorld()
    const states: unknown[] = []
    const tidyState = (): Promise<void> => Promise.resolve(void states.push(store.sessions.live().map(({ run }) => store.sessions.get(run)?.state)))
    await launchSession({ ...deps, tidyState, ...change(deps) }, order).catch(() => undefined)
    return states
  }
  const refused = (): Promise<never> => Promise.reject(new AppError('checkout-failed', 'no clone'))
  const broken = (deps: World['deps']): World['deps']['openRunDirectory'] => {
    const writeSession = (): never => {
      throw new AppError('disk-full', 'no room')
    }
    return (...of) => ({ ...deps.openRunDirectory(...of), writeSession })
  }
  expect(await tidied(() => ({}))).toEqual([['starting']])
  expect(await tidied(() => ({ prepare: refused }))).toEqual([])
  expect(await tidied(() => ({ openSandbox: refused }))).toEqual([])
  expect(await tidied((deps) => ({ openRunDirectory: broken(deps) }))).toEqual([])
  expect(await tidied(() => ({ stopping: AbortSignal.abort() }))).toEqual([])
})

test('a state/ that cannot be tidied refuses the launch, and all of it is undone', async () => {
  const { deps, store, seen } = openWorld()
  const tidyState = (): Promise<never> => Promise.reject(new AppError('env-root-unsafe', 'something cannot be removed'))
  await expect(launchSession({ ...deps, tidyState }, order)).rejects.toMatchObject({ code: 'env-root-unsafe' })
  expect([store.sessions.live(), seen]).toEqual([[], ['killed', 'directory removed', 'claim undone']])
})

test.each([
  ['a disk that cannot be asked', Object.assign(new Error('EIO: statfs'), { code: 'EIO' }), 'internal', 'the bus host failed: EIO: statfs'],
  ['a program that is no good', new AppError('config-invalid', 'bad'), 'config-invalid', 'bad'],
])('%s refuses the launch, and the launch log has it', async (_, error, code, why) => {
  const { deps, store } = openWorld()
  await expect(launchSession({ ...deps, facts: () => Promise.reject(error) }, order)).rejects.toMatchObject({ code, message: why })
  expect([...store.launchLog.list()]).toEqual([expect.objectContaining({ event: 'refused', instance: 'coder', by: 'ada', code, why, step: null })])
  expect(store.sessions.live()).toEqual([])
})
