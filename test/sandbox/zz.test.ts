import { expect, test } from 'vitest'
import { silentLog } from '../../src/core/log.ts'
import { runHelper } from '../../src/sandbox/helper.ts'
import { spawnBwrap } from '../../src/sandbox/spawn.ts'
import { collect } from '../../src/sandbox/collect.ts'
import { helperPlan } from '../../src/sandbox/plan.ts'
import { readSystem } from '../../src/sandbox/system.ts'
import { openWorld } from './world.ts'
test('bench', async () => {
  await using world = await openWorld()
  const plan = helperPlan({ system: readSystem({}), uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0, binds: [{ bind: { path: world.workspace }, readOnly: false }], env: {}, programs: [], cwd: world.workspace, forbidden: { trees: [], home: world.path('founder') } })
  const med = (a: number[]) => a.sort((x, y) => x - y)[a.length >> 1]
  const A: number[] = [], B: number[] = []
  for (let i = 0; i < 60; i++) {
    let s = performance.now()
    await runHelper({ bwrap: world.bwrap, log: silentLog }, { plan, command: ['/bin/true'], timeoutMs: 5000 })
    A.push(performance.now() - s)
    s = performance.now()
    const sp = await spawnBwrap(world.bwrap, { plan, command: ['/bin/true'], blocked: false, lockFd: null, stdout: 'pipe', stderr: 'pipe' })
    sp.stdin.end('')
    await collect(sp.child, { timeoutMs: 5000, stdoutLimitBytes: 1000 })
    B.push(performance.now() - s)
  }
  console.log('limited', med(A), 'bare', med(B))
  expect(1).toBe(1)
})
