import { PassThrough } from 'node:stream'
import { systemClock } from '../../src/core/clock.ts'
import { silentLog } from '../../src/core/log.ts'
import { createCapabilities } from '../../src/launch/capabilities.ts'
import type { LaunchOrder } from '../../src/launch/admit.ts'
import { createLiveRuns, type LiveRuns } from '../../src/launch/live.ts'
import type { LaunchConfig, LaunchDeps } from '../../src/launch/ports.ts'
import type { OpenedSandbox, SandboxEnd, SessionSandbox } from '../../src/launch/sandbox-ports.ts'
import type { EnvClaim, RunDirectory } from '../../src/launch/tree-ports.ts'
import type { Store } from '../../src/store/open.ts'
import { open, scratch } from '../store/scratch.ts'

export const order: LaunchOrder = {
  instance: 'coder',
  task: null,
  request: null,
  mode: 'keep',
  run: null,
  discard: false,
  asker: { kind: 'founder', name: 'ada' },
}

const role = {
  grants: [],
  harness: 'script',
  model: 'claude-sonnet-5-5',
  limits: { tools: [], memoryBytes: null, pids: 64, cpus: null, turnTimeoutMs: 60_000, idleTimeoutMs: null, runTimeoutMs: null, turnsPerHour: 9 },
  prompt: null,
  network: 'none',
  env: {},
  credentials: {},
}

const config = {
  system: { founder: 'ada', limits: { brokerTries: 1, brokerRetryMs: 1 }, harnesses: {} },
  business: { id: 'acme', projects: {}, roles: { coder: role }, launch: { by: null, instances: [], max: { sonnet: 1 } } },
  instances: new Map([['coder', { role: 'coder', model: 'claude-sonnet-5-5', family: 'sonnet', harness: 'script' }]]),
  roleOf: () => role,
} as unknown as LaunchConfig

export interface World {
  readonly store: Store
  readonly live: LiveRuns
  /** What was taken back, let go or ended, in its order. */
  readonly seen: string[]
  readonly deps: LaunchDeps
}

const process1 = { pid: 1, start: '0' }

function createSandbox(seen: string[]): SessionSandbox {
  const exits: ((end: SandboxEnd) => void)[] = []
  const ended = new Promise<SandboxEnd>((resolve) => exits.push(resolve))
  return {
    monitor: process1,
    init: process1,
    stdin: new PassThrough().resume(),
    limits: {},
    ended,
    settle: () => Promise.resolve(),
    unblock: () => Promise.resolve(process1),
    signalRunner: () => true,
    async kill() {
      seen.push('killed')
      for (const exit of exits) exit({ exitCode: null, signal: 'SIGKILL', outOfMemory: false, statusLost: false })
      await ended
    },
  }
}

const dir = { fd: -1, path: '/x', identity: '0:0' }

const createClaim = (seen: string[]): EnvClaim => ({
  env: 'coder',
  root: dir,
  lockFd: -1,
  outcome: 'kept',
  conversation: false,
  continuityLost: null,
  workspace: dir,
  state: dir,
  cache: dir,
  assertSame: () => undefined,
  undo: () => Promise.resolve(void seen.push('claim undone')),
  close: () => void seen.push('claim closed'),
})

const createDirectory = (seen: string[]): RunDirectory => ({
  path: '/x',
  home: dir,
  bundle: dir,
  writeBundle: () => undefined,
  writeSession: () => undefined,
  sessionFile: { fd: -1, path: '/x' },
  logFd: -1,
  appendTranscript: () => undefined,
  remove: () => void seen.push('directory removed'),
  close: () => void seen.push('directory closed'),
})

/** A launch with a real store, in which everything that it makes is only said to be there. */
export function openWorld(): World {
  const store = open(scratch())
  const seen: string[] = []
  const broker: LaunchDeps['broker'] = {
    task: () => null,
    assignTask: () => undefined,
    firstRequest: () => undefined,
    runEnded: () => false,
    afterEnd: (run) => void seen.push(`ended ${String(store.sessions.get(run)?.reason)}`),
  }
  const shared = { store, broker, clock: systemClock, log: silentLog, failpoint: () => undefined, capabilities: createCapabilities() }
  const live = createLiveRuns({ ...shared, limitedMs: () => null, onEnded: () => undefined })
  const opened = (): OpenedSandbox => ({ sandbox: createSandbox(seen), planHash: 'hash' })
  const deps: LaunchDeps = {
    ...shared,
    config: () => config,
    bootId: 'boot',
    stopping: new AbortController().signal,
    limited: () => ({}),
    env: {},
    paths: { envRoot: (env) => `/x/${env}`, runDir: (run) => `/x/${run}` },
    facts: () => Promise.resolve({ harness: null, unavailable: null }),
    claim: () => Promise.resolve(createClaim(seen)),
    prepare: () => Promise.resolve([]),
    tidyState: () => Promise.resolve(),
    openRunDirectory: () => createDirectory(seen),
    openSandbox: () => Promise.resolve(opened()),
    rolePrompt: () => Promise.resolve(null),
    harnessOf: () => ({ needsModelSocket: false, programs: new Map(), versions: { piVersion: null, claudeVersion: null } }),
    sockets: { bus: '/x/bus', launch: '/x/launch', git: '/x/git' },
    openModel: () => Promise.reject(new Error('no model')),
    closeModel: () => Promise.resolve(),
    runnerProgram: Buffer.from(''),
    adopt: live.adopt,
    fail: live.fail,
    keepTrying: live.keepTrying,
  }
  return { store, live, seen, deps }
}
