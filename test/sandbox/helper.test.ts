import { closeSync, existsSync, openSync, readFileSync, watch } from 'node:fs'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { tryFlock } from '../../src/core/kernel.ts'
import { silentLog } from '../../src/core/log.ts'
import { childrenOf, statusOf } from '../../src/core/proc.ts'
import { createBwrap } from '../../src/sandbox/bwrap.ts'
import { type HelperRequest, type HelperResult, runHelper } from '../../src/sandbox/helper.ts'
import { helperPlan, type HelperPlanInput } from '../../src/sandbox/plan.ts'
import { readSystem } from '../../src/sandbox/system.ts'
import { openWorld, type World } from './world.ts'

let world: World
let before: number[]
beforeEach(async () => {
  world = await openWorld()
  before = childrenOf(process.pid)
})
afterEach(() => world[Symbol.asyncDispose]())

const sh = (script: string, request: Partial<HelperRequest> = {}, input: Partial<HelperPlanInput> = {}): Promise<HelperResult> => {
  const plan = helperPlan({
    system: readSystem({}),
    uid: process.getuid?.() ?? 0,
    gid: process.getgid?.() ?? 0,
    binds: [
      { bind: { path: world.workspace }, readOnly: false },
      { bind: { path: world.path('founder') }, readOnly: true },
    ],
    env: { GIT_DIR: 'x' },
    programs: [],
    cwd: world.workspace,
    forbidden: { trees: [], home: world.path('founder') },
    ...input,
  })
  return runHelper({ bwrap: world.bwrap, log: silentLog }, { plan, command: ['/bin/sh', '-c', script], timeoutMs: 20_000, ...request })
}

const leftOver = (): number[] => childrenOf(process.pid).filter((pid) => !before.includes(pid) && !(statusOf(pid).State ?? 'Z').startsWith('Z'))

test('a helper reads its input, writes its tree and answers', async () => {
  const { exitCode, stdout, stderr, timedOut } = await sh('read line; echo "$line $GIT_DIR $HOME" > word; cat word; echo words >&2; exit 3', {
    input: 'hello\n',
  })
  expect([exitCode, stdout.toString(), stderr, timedOut]).toEqual([3, 'hello x /tmp\n', 'words\n', false])
  expect(readFileSync(`${world.workspace}/word`, 'utf8')).toBe('hello x /tmp\n')
})

test('it has no network, no sockets, and writes nothing that is read-only', async () => {
  const { stdout } = await sh(
    `ls /run; ls /sys/class/net 2>/dev/null; cat ${world.path('founder')}/secret; echo x > ${world.path('founder')}/secret || echo refused`,
  )
  expect(stdout.toString().trim().split('\n')).toEqual(['secretrefused'])
  expect(readFileSync(world.path('founder/secret'), 'utf8')).toBe('secret')
})

test('a FIFO that blocks it for ever costs one deadline, and nothing is left', async () => {
  const started = performance.now()
  const result = await sh('mkfifo fifo; echo begun; setsid -f sleep 600; cat fifo', { timeoutMs: 300 })
  expect(result).toMatchObject({ timedOut: true, overflow: false })
  expect(result.stdout.toString()).toBe('begun\n')
  expect(performance.now() - started).toBeLessThan(3000)
  expect(leftOver()).toEqual([])
})

test('an abort ends it with the reason, and nothing is left', async () => {
  const controller = new AbortController()
  const begun = watch(world.workspace, () => controller.abort(new Error('enough')))
  await expect(sh('touch begun; sleep 600', { signal: controller.signal })).rejects.toThrow('enough')
  begun.close()
  expect(leftOver()).toEqual([])
  await expect(sh('true', { signal: controller.signal })).rejects.toThrow('enough')
})

test('a helper has limits on processes, memory and core dumps, and room for what git needs', async () => {
  const { stdout } = await sh('ulimit -Hp; ulimit -Hd; ulimit -Hc')
  expect(stdout.toString().trim().split('\n')).toEqual(['256', String(4 * 1024 ** 2), '0'])
  const { stdout: many } = await sh('n=0; while [ $n -lt 100 ]; do sleep 20 & n=$((n+1)); done; echo $n')
  expect(many.toString().trim()).toBe('100')
  const { stderr, exitCode } = await sh('n=0; while [ $n -lt 400 ]; do sleep 20 & n=$((n+1)); done')
  expect([stderr, exitCode]).toEqual([expect.stringMatching(/fork/i), 2])
})

test('a fork bomb in a helper ends with it, and nothing is left of it', async () => {
  // exec: a shell that cannot fork any more would end before its time
  const bomb = await sh('b() { b | b & }; b; exec sleep 30', { timeoutMs: 2000 })
  expect(bomb.timedOut).toBe(true)
  expect(leftOver()).toEqual([])
  expect((await sh('echo next')).stdout.toString()).toBe('next\n')
})

test('output past its limit ends it', async () => {
  const result = await sh('cat /dev/zero', { stdoutLimit: 1000 })
  expect([result.overflow, result.timedOut, result.stdout.length]).toEqual([true, false, 1000])
  expect(leftOver()).toEqual([])
})

test('what it leaves running in the background is gone with it', async () => {
  const { exitCode } = await sh('setsid -f sleep 600 >/dev/null 2>&1; exit 0')
  expect(exitCode).toBe(0)
  expect(leftOver()).toEqual([])
})

test('the env root is locked for as long as a helper in it lives', async () => {
  world.dropLock()
  const lockFd = openSync(world.lockPath, 'r+')
  expect(tryFlock(lockFd)).toBe(true)
  const controller = new AbortController()
  const begun = new Promise<void>((resolve) => watch(world.workspace, { signal: controller.signal }, () => resolve()))
  const running = sh('touch begun; sleep 600', { lockFd, signal: controller.signal }).catch(() => undefined)
  await begun
  closeSync(lockFd)
  expect(world.isLocked()).toBe(true)
  controller.abort()
  await running
  expect(world.isLocked()).toBe(false)
  expect(existsSync(`${world.workspace}/begun`)).toBe(true)
})

test('a helper that fails to start says why', async () => {
  const { exitCode, stderr } = await sh('', { command: ['/nonexistent'] })
  expect([exitCode, stderr]).toEqual([1, expect.stringContaining('execvp /nonexistent')])
  await expect(
    runHelper(
      { bwrap: { ...createBwrap('/nonexistent/bwrap'), features: () => Promise.resolve({ bindFd: true, identity: '' }) }, log: silentLog },
      { plan: world.plan(), command: ['x'], timeoutMs: 1000 },
    ),
  ).rejects.toMatchObject({ code: 'sandbox-unavailable', message: '/nonexistent/bwrap is missing' })
})
