import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, mkdirSync, mkdtempSync, openSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import net from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { closeInheritedDescriptors, nativeAddonPath, tryFlock } from '../../src/core/kernel.ts'
import { silentLog } from '../../src/core/log.ts'
import type { ProcessId } from '../../src/core/proc.ts'
import { createScope, type Scope } from '../../src/core/scope.ts'
import { type Bwrap, createBwrap } from '../../src/sandbox/bwrap.ts'
import { type SandboxPlan, type SessionPlanInput, sessionPlan } from '../../src/sandbox/plan.ts'
import { INSIDE } from '../../src/sandbox/policy.ts'
import { ensureRunnerNode } from '../../src/sandbox/runner-node.ts'
import { openSession, type SessionSandbox } from '../../src/sandbox/session.ts'
import type { Bind } from '../../src/sandbox/steps.ts'
import { readSystem } from '../../src/sandbox/system.ts'

export const BWRAP = '/usr/bin/bwrap'
export const FIXTURE = new URL('../../fixtures/sandbox/inside.mjs', import.meta.url).pathname
const INSIDE_PROGRAM = '/opt/mosaic/inside.mjs'
const INSIDE_ADDON = '/opt/mosaic/inside.node'
const NO_LIMITS = { memoryBytes: null, pids: null, cpus: null, enforce: 'available' } as const

/** A program that runs what it is told: in a sandbox, or outside as the control. */
export interface Hands {
  readonly run: (code: string) => Promise<unknown>
}

export interface Inside extends Hands {
  readonly session: SessionSandbox
  readonly runner: ProcessId
}

export interface World extends AsyncDisposable {
  readonly root: string
  readonly bwrap: Bwrap
  readonly lockPath: string
  readonly logPath: string
  readonly workspace: string
  path(name: string): string
  plan(changes?: Partial<SessionPlanInput>): SandboxPlan
  /** A session, still blocked. */
  open(changes?: Partial<SessionPlanInput>, command?: readonly string[]): Promise<SessionSandbox>
  /** A session with the test's hands as its pid 2. */
  start(changes?: Partial<SessionPlanInput>): Promise<Inside>
  outside(): Promise<Hands>
  /** Can somebody else take the env root's lock? */
  isLocked(): boolean
  /** Ends this process's own hold of the lock. */
  readonly dropLock: () => void
}

function openHands(socket: net.Socket): Hands {
  const lines = createInterface({ input: socket })
  const waiting: { readonly resolve: (value: unknown) => void; readonly reject: (error: Error) => void }[] = []
  lines.on('line', (line) => waiting.shift()?.resolve(JSON.parse(line)))
  socket.on('error', () => undefined)
  socket.on('close', () => {
    for (const { reject } of waiting) reject(new Error('the program is gone'))
  })
  return {
    run: (code) =>
      new Promise((resolve, reject) => {
        waiting.push({ resolve, reject })
        socket.write(`${JSON.stringify(code)}\n`)
      }),
  }
}

async function listen(scope: Scope, path: string): Promise<() => Promise<Hands>> {
  const server = net.createServer()
  server.listen(path)
  await once(server, 'listening')
  scope.defer(() => server.close())
  return async () => {
    const [socket] = (await once(server, 'connection')) as [net.Socket]
    scope.defer(() => socket.destroy())
    return openHands(socket)
  }
}

export async function openWorld(): Promise<World> {
  closeInheritedDescriptors()
  const scope = createScope()
  const root = realpathSync(mkdtempSync('/tmp/ms-'))
  scope.defer(() => rmSync(root, { recursive: true, force: true }))
  const path = (name: string): string => join(root, name)
  const pin = (name: string): Bind => {
    const fd = openSync(path(name), 'r')
    scope.defer(() => closeSync(fd))
    return { fd, path: path(name) }
  }
  for (const name of ['env', 'run', 'host', 'founder', 'env/workspace', 'env/state', 'env/cache', 'run/home', 'run/bundle'])
    mkdirSync(path(name), { mode: 0o700 })
  writeFileSync(path('founder/secret'), 'secret')
  writeFileSync(path('run/session.json'), '{}')
  writeFileSync(path('env/lock'), '')
  const logPath = path('run/runner.log')
  const logFd = openSync(logPath, 'a')
  scope.defer(() => closeSync(logFd))
  let lockFd: number | null = openSync(path('env/lock'), 'r+')
  tryFlock(lockFd)
  const dropLock = (): void => {
    if (lockFd !== null) closeSync(lockFd)
    lockFd = null
  }
  scope.defer(dropLock)

  const bwrap = createBwrap(BWRAP)
  const base: SessionPlanInput = {
    system: readSystem({ PATH: '/usr/bin:/home/ada/bin' }),
    run: 'r0123456789ab',
    uid: process.getuid?.() ?? 0,
    gid: process.getgid?.() ?? 0,
    network: 'none',
    env: { PAGER: 'cat' },
    home: pin('run/home'),
    workspace: pin('env/workspace'),
    state: pin('env/state'),
    cache: pin('env/cache'),
    bundle: pin('run/bundle'),
    sessionFile: pin('run/session.json'),
    sockets: [{ name: 'bus.sock', path: path('host/bus.sock') }],
    runnerNode: await ensureRunnerNode(path('host')),
    programs: [],
    ownPrograms: [
      { source: FIXTURE, dest: INSIDE_PROGRAM },
      { source: nativeAddonPath(), dest: INSIDE_ADDON },
    ],
    pathDirs: [],
    forbidden: { trees: [], home: path('founder') },
    limits: NO_LIMITS,
  }
  const accept = await listen(scope, path('host/bus.sock'))
  const acceptOutside = await listen(scope, path('host/outside.sock'))
  const plan = (changes: Partial<SessionPlanInput> = {}): SandboxPlan => sessionPlan({ ...base, ...changes })
  const open = async (changes?: Partial<SessionPlanInput>, command: readonly string[] = ['/bin/cat']): Promise<SessionSandbox> =>
    scope.use(await openSession({ bwrap, cgroup: null, log: silentLog }, { plan: plan(changes), command, lockFd: lockFd ?? -1, stderrFd: logFd }))

  return {
    root,
    bwrap,
    lockPath: path('env/lock'),
    logPath,
    workspace: path('env/workspace'),
    path,
    plan,
    open,
    dropLock,
    async start(changes) {
      const session = await open(changes, [INSIDE.runnerNode, INSIDE_PROGRAM, `${INSIDE.sockets}/bus.sock`, INSIDE_ADDON])
      const accepted = accept()
      await session.settle()
      const runner = await session.unblock()
      const hands = await accepted
      return { session, runner, run: hands.run }
    },
    async outside() {
      const accepted = acceptOutside()
      const child: ChildProcess = spawn(process.execPath, [FIXTURE, path('host/outside.sock'), nativeAddonPath()], {
        stdio: ['pipe', 'ignore', 'inherit'],
        env: {},
      })
      scope.defer(() => child.kill('SIGKILL'))
      return accepted
    },
    isLocked() {
      const fd = openSync(path('env/lock'), 'r+')
      try {
        return !tryFlock(fd)
      } finally {
        closeSync(fd)
      }
    },
    [Symbol.asyncDispose]: () => scope.close(),
  }
}
