import { chmodSync, readdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { silentLog } from '../../src/core/log.ts'
import { childrenOf, statusOf } from '../../src/core/proc.ts'
import { type Bwrap, createBwrap } from '../../src/sandbox/bwrap.ts'
import { createProbe, type Probe } from '../../src/sandbox/probe.ts'
import { judgeProbe, parseReport } from '../../src/sandbox/probe-verdict.ts'
import { BWRAP, openWorld, type World } from './world.ts'

let world: World
beforeEach(async () => {
  world = await openWorld()
})
afterEach(() => world[Symbol.asyncDispose]())

const probe = (bwrap: Bwrap, deadlineMs = 5000): Probe =>
  createProbe({
    bwrap,
    deadlineMs,
    scratchDir: world.path('host'),
    runnerNode: world.path('host/node'),
    forbidden: { trees: [], home: world.path('founder') },
    log: silentLog,
  })

/** A stand-in that counts its runs; `--help` is answered by the real one. */
function standIn(body: string): { bwrap: Bwrap; readonly runs: () => number; path: string } {
  const path = world.path('bwrap')
  writeFileSync(path, `#!/bin/bash\n[ "$1" = --help ] && exec ${BWRAP} --help\necho run >> ${world.path('runs')}\n${body}\n`)
  chmodSync(path, 0o755)
  writeFileSync(world.path('runs'), '')
  const runs = (): number => readFileSync(world.path('runs'), 'utf8').split('\n').length - 1
  return { bwrap: createBwrap(path), runs, path }
}

test('the real one holds, once for all who ask, and leaves nothing', async () => {
  const { bwrap, runs, path } = standIn(`exec ${BWRAP} "$@"`)
  const asked = probe(bwrap)
  const check = (): Promise<void> => asked.check()
  await Promise.all([check(), check(), check()])
  await check()
  expect(runs()).toBe(1)
  utimesSync(path, 1, 1)
  await check()
  expect(runs()).toBe(2)
  expect(readdirSync(world.path('host')).filter((name) => name.startsWith('probe-'))).toEqual([])
})

test('one that is missing', async () => {
  await expect(probe(createBwrap('/nonexistent/bwrap')).check()).rejects.toMatchObject({
    code: 'sandbox-unavailable',
    message: '/nonexistent/bwrap is missing',
  })
  await expect(probe(createBwrap(world.path('env'))).check()).rejects.toMatchObject({
    code: 'sandbox-unavailable',
    message: expect.stringContaining('failed: ') as string,
  })
})

test('one that fails says so itself, and is asked again', async () => {
  const { bwrap, runs, path } = standIn('echo "bwrap: setting up uid map: Permission denied" >&2; exit 1')
  const asked = probe(bwrap)
  const check = (): Promise<void> => asked.check()
  const refusal = { code: 'sandbox-unavailable', message: `${path} failed: bwrap: setting up uid map: Permission denied` }
  await expect(Promise.all([check(), check()])).rejects.toMatchObject(refusal)
  expect(runs()).toBe(1)
  await expect(check()).rejects.toMatchObject(refusal)
  expect(runs()).toBe(2)
})

test('one that hangs costs a deadline and leaves no process', async () => {
  const before = childrenOf(process.pid)
  const { bwrap, path } = standIn('sleep 600')
  const started = performance.now()
  await expect(probe(bwrap, 1000).check()).rejects.toMatchObject({ code: 'sandbox-unavailable', message: `${path} failed: no answer within 1 s` })
  expect(performance.now() - started).toBeLessThan(4000)
  expect(childrenOf(process.pid).filter((pid) => !before.includes(pid) && !(statusOf(pid).State ?? 'Z').startsWith('Z'))).toEqual([])
})

test('one that leaves the filter or the network out does not hold', async () => {
  // the stand-in rewrites the arguments that it is given by descriptor
  const rewrite = (from: string, to: string): string =>
    `tr '\\0' '\\n' <&3 | sed '${from}${to}' | tr '\\n' '\\0' > ${world.path('args')}; exec ${BWRAP} "$@" 3<${world.path('args')}`
  const shared = standIn(rewrite('s/^--unshare-net$/--unshare-ipc', '/'))
  await expect(probe(shared.bwrap).check()).rejects.toMatchObject({ code: 'sandbox-unavailable', message: expect.stringContaining('net namespace') as string })
  const same = standIn(rewrite('s/^--unshare-net$/--unshare-net', '/'))
  await probe(same.bwrap).check()
})

const REPORT = {
  status: 'CapInh:\t00\nCapPrm:\t00\nCapEff:\t00\nCapBnd:\t00\nCapAmb:\t00\nNoNewPrivs:\t1\nSeccomp:\t2\n',
  pids: ['1', '2'],
  self: '2',
  initEnvironment: 'ENOENT',
  initMemory: 'ENOENT',
  directories: [] as string[],
  typed: 1,
  loopback: 'ECONNREFUSED',
  corePattern: 'EACCES',
  root: 'EROFS',
  etc: 'EROFS',
}
const DESCRIPTORS = '/proc/2/fd/0 /proc/2/fd/1 /proc/2/fd/2 /proc/2/fd/3\n'

test('the verdict names each thing that does not hold', () => {
  expect(judgeProbe(parseReport(JSON.stringify(REPORT)), DESCRIPTORS)).toEqual([])
  const bad: readonly (readonly [Partial<typeof REPORT>, string])[] = [
    [{ status: REPORT.status.replace('CapEff:\t00', 'CapEff:\t01') }, 'capabilities are left'],
    [{ status: REPORT.status.replace('NoNewPrivs:\t1', 'NoNewPrivs:\t0') }, 'NoNewPrivs is off'],
    [{ status: REPORT.status.replace('Seccomp:\t2', 'Seccomp:\t0') }, 'the seccomp filter is off'],
    [{ pids: ['1', '2', '77'] }, 'foreign processes are visible'],
    [{ initEnvironment: 'A=b' }, 'the environment of pid 1 is readable'],
    [{ initMemory: 'done' }, 'the memory of pid 1 is there'],
    [{ directories: ['/proc/2/fd/9/..'] }, 'descriptors lead outside: /proc/2/fd/9/..'],
    [{ typed: 25 }, 'TIOCSTI is not refused'],
    [{ loopback: 'connected' }, "the host's loopback is reachable"],
    [{ corePattern: 'done' }, '/proc/sys/kernel/core_pattern is writable'],
    [{ root: 'done' }, '/ is writable'],
    [{ etc: 'done' }, '/etc is writable'],
  ]
  for (const [change, words] of bad) expect(judgeProbe({ ...REPORT, ...change }, DESCRIPTORS)).toEqual([words])
  expect(judgeProbe(REPORT, `${DESCRIPTORS.trim()} /proc/2/fd/251`)).toEqual([expect.stringContaining('more descriptors are open')])
})
