import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { lstatSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { describe, expect, test } from 'vitest'
import { bootId, isAlive, startTimeOf } from '../../src/core/proc.ts'
import type { RunRow } from '../../src/protocol/rows.ts'
import { heldLocks } from '../helpers/judge.ts'
import { processesOf, until, World } from '../helpers/world.ts'

const isLocked = ({ envRoot }: RunRow): boolean => heldLocks().has(String(lstatSync(join(envRoot, 'lock')).ino))

describe.concurrent('a host that died hard', () => {
  test.each([
    ['living on', undefined],
    ['stopped', 'SIGSTOP'],
    ['killed meanwhile', 'SIGKILL'],
  ] as const)('leaves its session %s; the next one ends it once, as host-lost, and can launch', async (_how, signal) => {
    await using world = new World()
    const first = await world.start()
    const row = await (await world.founder()).session('pm')
    await first.crash()
    expect(isLocked(row)).toBe(true)
    expect(processesOf(row.runDir)).toContain(row.pid)
    if (signal !== undefined) process.kill(row.runnerPid ?? 0, signal)
    if (signal === 'SIGKILL') await until('the session is gone', () => processesOf(world.root).length === 0)
    const second = await world.start()
    expect(second.output()).toContain(`run ${row.run} (pm) from an earlier host ended: host-lost`)
    expect(processesOf(row.runDir)).toEqual([])
    expect(isLocked(row)).toBe(false)
    const founder = await world.founder()
    expect(await founder.log({ event: 'end' })).toMatchObject([{ run: row.run, reason: 'host-lost', exitCode: null }])
    await founder.session('pm')
    expect(await founder.ask('pm', 'SAY again')).toBe('again')
    expect(await world.must(['trail', 'verify'])).toMatchObject({ ok: true })
  })

  test('has kept what it acknowledged', async () => {
    await using world = new World()
    const first = await world.start()
    const founder = await world.founder()
    const id = await founder.send('coder', 'kept')
    const { head } = (await founder.client.call('trail.head')) as { head: string }
    await first.crash()
    await world.start()
    const next = await world.founder()
    expect(await next.message(id)).toMatchObject({ body: 'kept' })
    expect((await next.trail()).map((record) => record.hash)).toContain(head)
  })
})

/** A process that has nothing to do with Mosaic. */
class Bystander {
  readonly child: ChildProcess = spawn('sleep', ['600'], { stdio: 'ignore' })
  readonly pid = this.child.pid ?? 0
  readonly start = startTimeOf(this.pid) ?? ''

  get lives(): boolean {
    return isAlive(this)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return
    const gone = once(this.child, 'exit')
    this.child.kill()
    await gone
  }
}

describe.concurrent('a pid in the store that is another process by now', () => {
  /** A dead host whose session is dead too, with the bystander's pid in its row. */
  async function recoverWith(world: World, bystander: Bystander, recorded: { start: string; boot: string }): Promise<RunRow> {
    const first = await world.start()
    const row = await (await world.founder()).session('coder')
    await first.crash()
    process.kill(row.runnerPid ?? 0, 'SIGKILL')
    await until('the session is gone', () => processesOf(world.root).length === 0)
    const db = new Database(join(world.data, 'mosaic.db'))
    db.prepare(
      'UPDATE sessions SET monitor_pid = ?, init_pid = ?, runner_pid = ?, monitor_start = ?, init_start = ?, runner_start = ?, boot_id = ? WHERE run = ?',
    ).run(bystander.pid, bystander.pid, bystander.pid, recorded.start, recorded.start, recorded.start, recorded.boot, row.run)
    db.close()
    await world.start()
    return row
  }

  test.each([
    ['is killed when it is the one recorded', (bystander: Bystander) => ({ start: bystander.start, boot: bootId() }), false],
    ['lives on when it started at another time', () => ({ start: '1', boot: bootId() }), true],
    ['lives on when it is of another boot', (bystander: Bystander) => ({ start: bystander.start, boot: '00000000-0000-0000-0000-000000000000' }), true],
  ] as const)('%s', async (_what, recorded, lives) => {
    await using world = new World()
    await using bystander = new Bystander()
    const row = await recoverWith(world, bystander, recorded(bystander))
    expect(bystander.lives).toBe(lives)
    const founder = await world.founder()
    expect(await founder.ends(row.run)).toMatchObject([{ reason: 'host-lost' }])
    await founder.session('coder')
  })
})
