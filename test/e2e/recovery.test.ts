import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { processesOf, until, World } from '../helpers/world.ts'

interface Row {
  readonly run: string
  readonly pid: number
  readonly runnerPid: number
  readonly envRoot: string
}

const isLocked = (path: string): boolean => spawnSync('flock', ['-n', '-x', '-E', '99', path, 'true']).status === 99
/** Is there such a process, and no zombie? */
const isRunning = (pid: number): boolean => existsSync(`/proc/${String(pid)}`) && !/\) [ZX] /.test(readFileSync(`/proc/${String(pid)}/stat`, 'latin1'))
const pm = async (world: World): Promise<Row> => {
  const [row] = await world.must<Row[]>(['ps'])
  if (row === undefined) throw new Error('no PM runs')
  return row
}

describe('a host that died hard', () => {
  test.each([
    ['living on', undefined],
    ['stopped', 'SIGSTOP'],
    ['killed meanwhile', 'SIGKILL'],
  ] as const)('leaves its session %s; the next one ends it once, as host-lost, and can launch', async (_how, signal) => {
    await using world = new World()
    const first = await world.start({ pm: true })
    await world.ask('pm', 'SAY here')
    const row = await pm(world)
    await first.crash()
    expect(isLocked(join(row.envRoot, 'lock'))).toBe(true)
    expect([row.pid, row.runnerPid].every(isRunning)).toBe(true)
    if (signal !== undefined) process.kill(row.runnerPid, signal)
    if (signal === 'SIGKILL') await until('the session is gone', () => ![row.pid, row.runnerPid].some(isRunning))
    const second = await world.start()
    expect(second.output()).toContain(`run ${row.run} (pm) from an earlier host ended: host-lost`)
    expect([row.pid, row.runnerPid].some(isRunning)).toBe(false)
    expect(processesOf(row.envRoot)).toEqual([])
    expect(isLocked(join(row.envRoot, 'lock'))).toBe(false)
    expect(await world.must(['log', '--event', 'end'])).toMatchObject([{ run: row.run, reason: 'host-lost', exitCode: null }])
    expect((await world.json(['launch', 'pm'])).code).toBe(0)
    expect(await world.ask('pm', 'SAY again')).toBe('again')
    expect(await world.must(['trail', 'verify'])).toMatchObject({ ok: true })
  })

  test('keeps what it had acknowledged', async () => {
    await using world = new World()
    const first = await world.start()
    const sent = await world.must<{ id: string }>(['message', 'send', '--to', 'coder', '--class', 'NOTE', 'kept'])
    const { head } = await world.must<{ head: string }>(['trail', 'head'])
    await first.crash()
    await world.start()
    expect(await world.must(['message', 'show', sent.id])).toMatchObject({ body: 'kept' })
    expect((await world.must<{ hash: string }[]>(['trail'])).map((record) => record.hash)).toContain(head)
  })
})
