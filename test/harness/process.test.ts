import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { isGone, pidIn, untilGone } from '../../fixtures/harness/processes.ts'
import { type Program, spawnProgram } from '../../src/harness/process.ts'

let dir: string
let lines: string[]
let logged: string[]

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'mrp-'))
  lines = []
  logged = []
})
afterEach(() => rm(dir, { recursive: true, force: true }))

const spawnShell = (script: string, command = '/bin/sh'): Program =>
  spawnProgram({
    command,
    args: ['-c', script],
    cwd: dir,
    env: { PATH: '/usr/bin:/bin' },
    spillDir: join(dir, 'spill'),
    onLine: (line) => lines.push(line),
    onLong: ({ bytes }) => lines.push(`long ${String(bytes)}`),
    log: (line) => logged.push(line),
  })

describe('spawnProgram', () => {
  test('lines in, lines out, standard error in the log, its exit', async () => {
    const program = spawnShell('read line; echo "got $line"; echo oops >&2; printf "no newline"; exit 3')
    await program.spawned
    program.write({ a: 1 })
    expect(await program.exited).toEqual({ code: 3, signal: null })
    expect(lines).toEqual(['got {"a":1}', 'no newline'])
    expect(logged).toEqual(['stderr: oops'])
  })

  test('a line of 70 MB and much standard error stop nothing', async () => {
    const program = spawnShell(
      'head -c 70000000 /dev/zero | tr "\\0" x; echo; head -c 1000000 /dev/zero | tr "\\0" "\\n" >&2; yes err | head -n 100000 >&2; echo done',
    )
    expect((await program.exited).code).toBe(0)
    expect(lines).toEqual(['long 70000000', 'done'])
    expect(logged).toHaveLength(2001)
  })

  test('one that is not there, or cannot be run, is missing', async () => {
    await expect(spawnShell('true', '/nonexistent/program').spawned).rejects.toMatchObject({ code: 'harness-missing' })
    await expect(spawnShell('true', dir).spawned).rejects.toMatchObject({ code: 'harness-missing' })
  })

  test('close: the end of its input is enough for one that listens', async () => {
    const program = spawnShell('cat; echo bye')
    await program.close(60_000)
    expect([await program.exited, lines]).toEqual([{ code: 0, signal: null }, ['bye']])
  })

  test('close: one that does not listen gets SIGTERM, one that ignores it SIGKILL; its children go too', async () => {
    const deaf = spawnShell('sleep 600')
    await deaf.spawned
    await deaf.close(200)
    expect(await deaf.exited).toEqual({ code: null, signal: 'SIGTERM' })
    const stubborn = spawnShell('trap "" TERM; sleep 600 & echo $! > child; wait; while :; do sleep 600; done')
    const child = await pidIn(join(dir, 'child'))
    expect(await isGone(child)).toBe(false)
    await Promise.all([stubborn.close(200), stubborn.close(200)])
    expect(await stubborn.exited).toEqual({ code: null, signal: 'SIGKILL' })
    await untilGone(child)
  })

  test('a child that holds its output open does not hold up its exit, and goes with it', async () => {
    const program = spawnShell('sleep 600 & echo $! > child; echo said')
    expect((await program.exited).code).toBe(0)
    expect(lines).toEqual(['said'])
    await untilGone(await pidIn(join(dir, 'child')))
  })
})
