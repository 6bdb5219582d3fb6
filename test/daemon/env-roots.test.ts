import * as fs from 'node:fs'
import { expect, test } from 'vitest'
import { silentLog } from '../../src/core/log.ts'
import type { BusinessConfig } from '../../src/config/types.ts'
import { createEnvRootDeps } from '../../src/daemon/env-roots.ts'
import type { ClaimDeps } from '../../src/envroot/ports.ts'
import type { SyncDeps } from '../../src/workspace/sync.ts'
import { holdLock, NEXT, openWorld, RUN, type World } from '../envroot/world.ts'
import { open, scratch, starting } from '../store/scratch.ts'

/** Env roots whose holders a real store tells, as the host wires them. */
function withStore(w: World): ReturnType<typeof open> {
  const store = open(scratch())
  const deps: ClaimDeps = createEnvRootDeps({
    dataRoot: w.dataRoot,
    log: silentLog,
    business: () => ({ id: 'acme' }) as BusinessConfig,
    workspaces: {} as SyncDeps,
    liveInEnv: (env, but) => store.sessions.liveInEnv(env, but)?.run ?? null,
  })
  w.deps.holderOf = deps.holderOf
  return store
}

test('a busy env root names who holds it, and never the run that is refused', async () => {
  const w = await openWorld()
  const store = withStore(w)
  await w.made()
  const holder = await holdLock(w.env('coder', 'lock'))
  store.writeNow(() => store.sessions.insertStarting(starting(NEXT)))
  // the store has nobody else: the owner file tells
  expect((await w.refused()).data).toEqual({ run: RUN })
  await holder.end()
  expect((await w.claim()).outcome).toBe('kept')
})

test('a lock file that was replaced lets nobody in beside a live run, although a newer row has the same env root', async () => {
  const w = await openWorld()
  const store = withStore(w)
  store.writeNow(() => store.sessions.insertStarting(starting(RUN)))
  await w.claim({ run: RUN })
  store.writeNow(() => store.sessions.insertStarting(starting(NEXT, { instance: 'other' })))
  fs.unlinkSync(w.env('coder', 'lock'))
  expect((await w.refused()).data).toEqual({ run: RUN })
})
