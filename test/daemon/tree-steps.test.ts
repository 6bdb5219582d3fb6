import * as fs from 'node:fs'
import { expect, test } from 'vitest'
import { AppError } from '../../src/core/errors.ts'
import { silentLog } from '../../src/core/log.ts'
import { createTreeSteps } from '../../src/daemon/tree-steps.ts'
import type { LaunchConfig } from '../../src/launch/ports.ts'
import type { SessionFile } from '../../src/protocol/session.ts'
import { createRunId } from '../../src/core/ids.ts'
import { createRootGate } from '../../src/workspace/root-gate.ts'
import { createRootLooks } from '../../src/workspace/root-state.ts'
import { openWorld, type World } from '../envroot/world.ts'

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

const CONVERSATION = JSON.stringify({ harness: 'claude-code', id: 'c-1' })
const at = (w: World, name: string): string => w.env('coder', 'state', name)
const earlier = (run: string, { root }: Claim) => ({ ...request(), run, identity: root.identity })
type Claim = Awaited<ReturnType<ReturnType<typeof stepsOf>['claim']>>

/** A run of the harness from its claim to its end; null: it said nothing. */
async function work(w: World, more: object, conversation: string | null = CONVERSATION): Promise<Claim & { readonly run: string }> {
  const steps = stepsOf(w)
  const asked = { ...request(), ...more }
  const claim = await steps.claim(asked, { harness: 'claude-code', signal })
  await steps.tidyState(claim, { harness: 'claude-code' } as SessionFile, signal)
  if (conversation !== null) w.write(at(w, 'conversation.json'), conversation)
  claim.close()
  return { ...claim, run: asked.run }
}

const goOn = (w: World, run: string, of: Claim, harness = 'claude-code') =>
  stepsOf(w).claim({ ...request(), mode: 'continue', continueFrom: earlier(run, of) }, { harness, signal })

test('a conversation outlives a launch that is refused after its claim', async () => {
  const w = await openWorld()
  const a = await work(w, {})
  const refused = await stepsOf(w).claim(request(), { harness: 'claude-code', signal })
  await refused.undo()
  expect(fs.readFileSync(at(w, 'conversation.json'), 'utf8')).toBe(CONVERSATION)
  const claim = await goOn(w, a.run, a)
  expect([claim.outcome, claim.conversation, claim.continuityLost]).toEqual(['continued', true, null])
  claim.close()
})

test('state/ is tidied by the harness, and gets its configuration; what an agent planted goes', async () => {
  const w = await openWorld()
  const a = await work(w, {})
  for (const name of ['settings.json', 'planted']) w.write(at(w, name), 'by an agent')
  const claim = await goOn(w, a.run, a)
  await stepsOf(w).tidyState(claim, { harness: 'claude-code' } as SessionFile, signal)
  expect(fs.readdirSync(at(w, '')).sort()).toEqual(['conversation.json', 'settings.json'])
  expect(fs.readFileSync(at(w, 'settings.json'), 'utf8')).toBe('{}\n')
  claim.close()
})

test('a run whose conversation another run has replaced is not continued with that one, and is told', async () => {
  const w = await openWorld()
  const a = await work(w, {})
  const b = await work(w, {})
  const claim = await goOn(w, a.run, a)
  expect([claim.outcome, claim.conversation, claim.continuityLost]).toEqual(['kept', false, `run ${b.run} worked in the env root of run ${a.run} since`])
  await claim.undo()
  const control = await goOn(w, b.run, b)
  expect([control.outcome, control.conversation]).toEqual(['continued', true])
  control.close()
})

test('a conversation that a run went on with is its own and that of the runs before it', async () => {
  const w = await openWorld()
  const a = await work(w, {})
  const c = await work(w, { mode: 'continue', continueFrom: earlier(a.run, a) })
  for (const run of [a.run, c.run]) {
    const claim = await goOn(w, run, a)
    expect([claim.outcome, claim.conversation]).toEqual(['continued', true])
    await claim.undo()
  }
  const other = await goOn(w, 'r0000000000ee', a)
  expect(other.conversation).toBe(false)
  await other.undo()
})

test.each([
  ['left none', null, 'claude-code'],
  ['left that of another harness', CONVERSATION, 'pi'],
  ['left something else', 'null', 'claude-code'],
])('a run that %s has none to go on with, and what follows it is no part of it', async (_, left, harness) => {
  const w = await openWorld()
  const a = await work(w, {}, left)
  const claim = await goOn(w, a.run, a, harness)
  expect([claim.outcome, claim.conversation, claim.continuityLost]).toEqual(['continued', false, `run ${a.run} left no conversation`])
  claim.close()
  w.write(at(w, 'conversation.json'), CONVERSATION)
  expect((await goOn(w, a.run, a)).continuityLost).toContain('since')
})

test('a harness that keeps no conversation loses none', async () => {
  const w = await openWorld()
  const a = await work(w, {}, null)
  const claim = await goOn(w, a.run, a, 'script')
  expect([claim.outcome, claim.conversation, claim.continuityLost]).toEqual(['continued', true, null])
  claim.close()
})

test('a tidying that is cut off leaves no half of a conversation', async () => {
  const w = await openWorld()
  const a = await work(w, {})
  w.write(at(w, 'projects/one'), 'of the conversation')
  const b = await stepsOf(w).claim(request(), { harness: 'claude-code', signal })
  w.deps.emptyTree = () => Promise.reject(new AppError('prepare-timeout', 'not in time'))
  await expect(stepsOf(w).tidyState(b, { harness: 'claude-code' } as SessionFile, signal)).rejects.toMatchObject({ code: 'prepare-timeout' })
  await b.undo()
  const claim = await goOn(w, a.run, a)
  expect([claim.outcome, claim.conversation]).toEqual(['continued', false])
  claim.close()
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
