import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, existsSync, mkdtempSync, openSync, rmSync, watch } from 'node:fs'
import { join } from 'node:path'
import { build } from 'esbuild'
import { expect, test } from 'vitest'
import { tryFlock } from '../../src/core/kernel.ts'
import { bootId, childrenOf, isAlive, type ProcessId, startTimeOf, waitGone } from '../../src/core/proc.ts'
import { killLeftover } from '../../src/sandbox/leftover.ts'

const FIXTURE = new URL('../../fixtures/sandbox/host.ts', import.meta.url)

interface Started {
  readonly root: string
  readonly monitor: ProcessId
  readonly init: ProcessId
  readonly runner: ProcessId
}

const isLocked = (path: string): boolean => {
  const fd = openSync(path, 'r+')
  try {
    return !tryFlock(fd)
  } finally {
    closeSync(fd)
  }
}

test('a session outlives a host that dies, a helper does not, and the lock is held until the session is ended', async () => {
  const dir = mkdtempSync('/tmp/ms-')
  const program = join(dir, 'host.mjs')
  const worldUrl = new URL('world.ts', import.meta.url).href
  const banner = { js: `import { createRequire as makeRequire } from 'node:module'; const require = makeRequire(${JSON.stringify(worldUrl)})` }
  await build({
    entryPoints: [FIXTURE.pathname],
    bundle: true,
    platform: 'node',
    format: 'esm',
    outfile: program,
    define: { 'import.meta.url': JSON.stringify(worldUrl) },
    banner,
  })
  const host = spawn(process.execPath, [program], { stdio: ['ignore', 'pipe', 'inherit'] })
  const failed = once(host, 'exit').then(() => Promise.reject(new Error('the host ended by itself')))
  failed.catch(() => undefined)
  const [line] = await Promise.race([once(host.stdout, 'data') as Promise<[Buffer]>, failed])
  const { root, monitor, init, runner } = JSON.parse(line.toString()) as Started
  const workspace = join(root, 'env/workspace')
  await new Promise<void>((resolve) => {
    const watcher = watch(workspace, () => resolve())
    if (existsSync(join(workspace, 'begun'))) resolve()
    void watcher.unref()
  })
  const helpers = childrenOf(host.pid ?? 0)
    .map((pid) => ({ pid, start: startTimeOf(pid) ?? '' }))
    .filter(({ pid }) => pid !== monitor.pid)
  const inits = helpers.flatMap(({ pid }) => childrenOf(pid).map((child) => ({ pid: child, start: startTimeOf(child) ?? '' })))
  expect([helpers.length, inits.length]).toEqual([1, 1])
  host.kill('SIGKILL')
  await once(host, 'exit')
  for (const process of [...helpers, ...inits]) expect(await waitGone(process, { timeoutMs: 5000 })).toBe(true)
  expect([isAlive(monitor), isAlive(init), isAlive(runner), isLocked(join(root, 'env/lock'))]).toEqual([true, true, true, true])
  await killLeftover({ monitor, init }, { bootId: bootId() })
  expect([isAlive(monitor), isAlive(init), isAlive(runner), isLocked(join(root, 'env/lock'))]).toEqual([false, false, false, false])
  for (const path of [dir, root]) rmSync(path, { recursive: true, force: true })
})
