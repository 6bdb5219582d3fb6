import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { isGone, pidIn, untilGone } from '../../fixtures/harness/processes.ts'
import { runShell } from '../../src/harness/shell.ts'

const never = new AbortController().signal
let cwd: string

beforeEach(async () => {
  cwd = await mkdtemp(join(tmpdir(), 'mrs-'))
})
afterEach(() => rm(cwd, { recursive: true, force: true }))

const run = (command: string, signal = never): ReturnType<typeof runShell> => runShell(command, { cwd, env: { PATH: '/usr/bin:/bin' } }, signal)

describe('runShell', () => {
  test('both streams as they come, and the exit code', async () => {
    expect(await run('echo one; echo two >&2; echo three; exit 7')).toEqual({ output: 'one\ntwo\nthree\n', exitCode: 7 })
    expect(await run('echo \'quotes "and" $0\' $1 $#')).toEqual({ output: 'quotes "and" $0 0\n', exitCode: 0 })
  })

  test('standard input is empty, a signal is 128 and its number', async () => {
    expect(await run('cat; kill -TERM $$')).toEqual({ output: '', exitCode: 143 })
  })

  test('what is left in the background does not hold it up', async () => {
    const { output } = await run('sleep 600 & echo $!')
    const pid = Number(output)
    expect(await isGone(pid)).toBe(false)
    process.kill(pid, 'SIGKILL')
  })

  test('all that was written is there, however it was split', async () => {
    const { output } = await run('i=0; while [ $i -lt 2000 ]; do echo "line $i é"; i=$((i+1)); done')
    expect(output.split('\n')).toHaveLength(2001)
    expect(output).not.toContain('\ufffd')
  })

  test('output past the limit is cut, and says so', async () => {
    const { output, exitCode } = await run('head -c 20000000 /dev/zero')
    expect(exitCode).toBe(0)
    expect(output.slice(16 * 1024 * 1024)).toBe('\n[cut: 3222784 bytes more]\n')
  })

  test('a directory that is gone is an exit code, no crash', async () => {
    await rm(cwd, { recursive: true })
    expect((await run('true')).exitCode).toBe(127)
  })

  test('an abort kills the whole group', async () => {
    const abort = new AbortController()
    const running = run('sleep 600 & echo $! > child; echo $$ > self; wait', abort.signal)
    const pids = await Promise.all(['child', 'self'].map((name) => pidIn(join(cwd, name))))
    expect(await Promise.all(pids.map(isGone))).toEqual([false, false])
    abort.abort()
    expect((await running).exitCode).toBe(137)
    await Promise.all(pids.map(untilGone))
  })
})
