import { once } from 'node:events'
import { closeSync, mkdirSync, openSync } from 'node:fs'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import net from 'node:net'
import { release, version } from 'node:os'
import { join } from 'node:path'
import { AppError, messageOf } from '../core/errors.ts'
import { nativeAddonPath } from '../core/kernel.ts'
import type { Log } from '../core/log.ts'
import { createScope, type Scope } from '../core/scope.ts'
import { type Bwrap, failed } from './bwrap.ts'
import { readMachine } from './machine.ts'
import { type SandboxPlan, sessionPlan } from './plan.ts'
import { INSIDE } from './policy.ts'
import { PROBE_ADDON, PROBE_DESCRIPTORS, PROBE_REPORT, probeCommand, probeScript } from './probe-program.ts'
import { judgeProbe, parseReport } from './probe-verdict.ts'
import { openSession } from './session.ts'
import type { Forbidden } from './sources.ts'
import type { Bind } from './steps.ts'
import { readSystem } from './system.ts'

export interface ProbeDeps {
  readonly bwrap: Bwrap
  /** A private directory of ours; what is made in it is gone afterwards. */
  readonly scratchDir: string
  /** ensureRunnerNode's copy, or any Node where there is none yet. */
  readonly runnerNode: string
  readonly forbidden: Forbidden
  readonly log: Log
  /** For one run; DEADLINE_MS unless set. */
  readonly deadlineMs?: number
  /** Ends a run with its reason. */
  readonly signal?: AbortSignal
}

export interface Probe {
  /**
   * Proves by one real run of the real policy that the sandbox holds on this machine. Throws `sandbox-unavailable`: `PATH is missing`, or `PATH failed: ` and
   * its own words. A success is remembered until bubblewrap or the machine's rules change, a failure never; checks at the same time share one run.
   */
  check(): Promise<void>
}

// a slow machine is not a broken one: a second here takes fifteen where the processor is emulated
const DEADLINE_MS = 30_000
const RUN = 'r000000000000'

interface Scratch {
  readonly plan: SandboxPlan
  readonly workspace: string
  readonly lockFd: number
  readonly stderrFd: number
}

function openScratch(scope: Scope, dir: string, deps: ProbeDeps): Scratch {
  const open = (name: string, flags: string): Bind => {
    const path = join(dir, name)
    const fd = openSync(path, flags, 0o600)
    scope.defer(() => closeSync(fd))
    return { fd, path }
  }
  const directory = (name: string): Bind => {
    mkdirSync(join(dir, name), { mode: 0o700 })
    return open(name, 'r')
  }
  const [home, workspace, state, cache, bundle] = [directory('home'), directory('workspace'), directory('state'), directory('cache'), directory('bundle')]
  const plan = sessionPlan({
    system: readSystem({}),
    run: RUN,
    uid: process.getuid?.() ?? 0,
    gid: process.getgid?.() ?? 0,
    network: 'none',
    env: {},
    ...{ home, workspace, state, cache, bundle },
    sessionFile: open('session.json', 'w+'),
    sockets: [],
    runnerNode: deps.runnerNode,
    programs: [],
    ownPrograms: [{ source: nativeAddonPath(), dest: PROBE_ADDON }],
    pathDirs: [],
    forbidden: deps.forbidden,
    limits: { memoryBytes: null, pids: null, cpus: null, enforce: 'available' },
  })
  return { plan, workspace: workspace.path, lockFd: open('lock', 'w+').fd, stderrFd: open('stderr', 'a+').fd }
}

/** A listener on the host's loopback: the sandbox must not reach it. */
async function listen(scope: Scope): Promise<number> {
  const server = net.createServer((socket) => socket.destroy())
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  scope.defer(() => server.close())
  const address = server.address()
  return typeof address === 'object' && address !== null ? address.port : 0
}

async function runInside(scope: Scope, deps: ProbeDeps, dir: string, signal: AbortSignal): Promise<string[]> {
  const { plan, workspace, lockFd, stderrFd } = openScratch(scope, dir, deps)
  const port = await listen(scope)
  const session = scope.use(
    await openSession({ bwrap: deps.bwrap, cgroup: null, log: deps.log }, { plan, command: probeCommand(INSIDE.runnerNode), lockFd, stderrFd, signal }),
  )
  const onAbort = (): void => void session.kill()
  signal.addEventListener('abort', onAbort, { once: true })
  await session.settle(signal)
  await session.unblock(signal)
  session.stdin.end(probeScript(port))
  const { exitCode } = await session.ended
  signal.throwIfAborted()
  if (exitCode !== 0) throw failed(deps.bwrap.path, await readFile(join(dir, 'stderr'), 'utf8'))
  return judgeProbe(parseReport(await readFile(join(workspace, PROBE_REPORT), 'utf8')), await readFile(join(workspace, PROBE_DESCRIPTORS), 'utf8'))
}

function toUnavailable({ bwrap: { path }, deadlineMs = DEADLINE_MS }: ProbeDeps, error: unknown, signal: AbortSignal): AppError {
  if (signal.aborted) return failed(path, `no answer within ${String(deadlineMs / 1000)} s`, error)
  if (!(error instanceof AppError)) return failed(path, messageOf(error), error)
  if (error.code === 'sandbox-unavailable') return error
  return error.code === 'spawn-failed'
    ? new AppError('sandbox-unavailable', error.message, { hint: 'mosaic doctor sandbox', cause: error })
    : failed(path, error.message, error)
}

async function runProbe(deps: ProbeDeps): Promise<void> {
  const deadline = AbortSignal.timeout(deps.deadlineMs ?? DEADLINE_MS)
  const signal = deps.signal === undefined ? deadline : AbortSignal.any([deps.signal, deadline])
  const scope = createScope()
  try {
    const dir = await mkdtemp(join(deps.scratchDir, 'probe-'))
    scope.defer(() => rm(dir, { recursive: true, force: true }))
    const problems = await runInside(scope, deps, dir, signal)
    if (problems.length > 0) throw failed(deps.bwrap.path, `the sandbox does not hold: ${problems.join('; ')}`)
  } catch (error) {
    deps.signal?.throwIfAborted()
    throw toUnavailable(deps, error, deadline)
  } finally {
    await scope.close()
  }
}

export function createProbe(deps: ProbeDeps): Probe {
  let proved: string | undefined
  let running: Promise<void> | undefined
  const prove = async (): Promise<void> => {
    const { identity } = await deps.bwrap.features(AbortSignal.timeout(deps.deadlineMs ?? DEADLINE_MS))
    const key = [identity, release(), version(), String(process.getuid?.()), deps.runnerNode, ...readMachine()].join('\n')
    if (proved === key) return
    await runProbe(deps)
    proved = key
  }
  return {
    check: () =>
      (running ??= prove().finally(() => {
        running = undefined
      })),
  }
}
