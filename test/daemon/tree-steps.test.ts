import * as fs from 'node:fs'
import { expect, test } from 'vitest'
import { AppError } from '../../src/core/errors.ts'
import { silentLog } from '../../src/core/log.ts'
import { createTreeSteps } from '../../src/daemon/tree-steps.ts'
import type { LaunchConfig } from '../../src/launch/ports.ts'
import { createRunId } from '../../src/core/ids.ts'
import { createRootGate } from '../../src/workspace/root-gate.ts'
import { createRootLooks } from '../../src/workspace/root-state.ts'
import { holdLock, openWorld, type World } from '../envroot/world.ts'

const request = () => ({
  business: 'acme',
  env: 'coder',
  instance: 'coder',
  role: 'coder',
  task: null,
  run: createRunId(),
  mode: 'keep' as const,
  discard: false,
  continueFrom: null,
  projects: [],
})

const { signal } = new AbortController()

/** No helper runs: what it would be asked for is what is looked at. */
const stepsOf = (w: World) =>
  createTreeSteps({
    envRoots: w.deps,
    workspaces: {
      log: silentLog,
      runHelper: () => Promise.reject(new Error('no helper')),
      helperCommand: [],
      gitRoot: `${w.root}/git`,
      locks: { withLock: (repository: string) => Promise.reject(new AppError('checkout-failed', repository)) },
      rootLooks: createRootLooks(),
      rootGate: createRootGate(),
    },
    failpoint: () => undefined,
    diverged: new Map(),
    recoverGit: () => Promise.resolve(),
  })

test('a claim goes by the harness of its launch; when what follows it fails, undoing it too, its lock is free', async () => {
  const w = await openWorld()
  const steps = stepsOf(w)
  const first = await steps.claim(request(), { harness: 'an instance that a reload took away has none', signal })
  first.close()
  w.write(w.env('coder', 'state', 'left'), 'by an agent')
  w.deps.emptyTree = () => Promise.reject(new AppError('prepare-timeout', 'not in time'))
  await expect(steps.claim(request(), { harness: 'script', signal })).rejects.toMatchObject({ code: 'prepare-timeout' })
  const holder = await holdLock(w.env('coder', 'lock'))
  await holder.end()
  fs.rmSync(w.env('coder', 'state', 'left'))
  const next = await steps.claim(request(), { harness: 'script', signal })
  next.close()
})

test('a workspace is prepared by the configuration of its launch', async () => {
  const w = await openWorld()
  const steps = stepsOf(w)
  const claim = await steps.claim(request(), { harness: 'script', signal })
  const config = {
    system: { limits: { prepareTimeoutMs: 5000 } },
    business: { id: 'acme', projects: { mine: { root: `${w.root}/mine`, branch: 'main' } } },
  } as unknown as LaunchConfig
  await expect(steps.prepare(claim.workspace, { config, signal })).rejects.toThrow('mine')
  claim.close()
})
