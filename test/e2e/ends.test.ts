import { lstatSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { RunRow } from '../../src/protocol/rows.ts'
import type { Founder } from '../helpers/founder.ts'
import { heldLocks } from '../helpers/judge.ts'
import { toBusiness } from '../helpers/seats.ts'
import { processesOf, until, World } from '../helpers/world.ts'

type Seats = Parameters<typeof toBusiness>[0]

async function open(seats: Seats): Promise<{ world: World; founder: Founder }> {
  const world = new World()
  world.business = toBusiness(seats)
  world.configure()
  await world.start()
  return { world, founder: await world.founder() }
}

/** The run has this one end, nothing of it lives, and its instance launches again. */
async function expectEnd(founder: Founder, row: RunRow, end: object): Promise<void> {
  expect(await founder.ended(row.run)).toMatchObject({ state: 'ended', live: false, ...end })
  expect(await founder.ends(row.run)).toMatchObject([end])
  expect(await founder.trail({ subject: row.run, kind: 'session.ended' })).toMatchObject([{ body: end }])
  expect(processesOf(row.runDir)).toEqual([])
  await founder.session(row.instance)
}

const logOf = (row: RunRow): string => readFileSync(join(row.runDir, 'runner.log'), 'utf8')

describe.concurrent('a session ends', () => {
  test('as sandbox-failed when the monitor of its sandbox is killed', async () => {
    const { world, founder } = await open({ coder: {} })
    await using _ = world
    const row = await founder.session('coder')
    process.kill(row.pid ?? 0, 'SIGKILL')
    await expectEnd(founder, row, { reason: 'sandbox-failed', exitCode: null, signal: null })
  })

  test('in time when the monitor of its sandbox is stopped', async () => {
    const { world, founder } = await open({ coder: {} })
    await using _ = world
    const row = await founder.session('coder')
    process.kill(row.pid ?? 0, 'SIGSTOP')
    await founder.stop('coder', 300)
    await expectEnd(founder, row, { reason: 'stopped', exitCode: null, signal: 'SIGKILL' })
  })

  test('in time when its runner is stopped', async () => {
    const { world, founder } = await open({ coder: {} })
    await using _ = world
    const row = await founder.session('coder')
    process.kill(row.runnerPid ?? 0, 'SIGSTOP')
    await founder.stop('coder', 300)
    await expectEnd(founder, row, { reason: 'stopped', exitCode: null, signal: 'SIGKILL' })
  })

  test('as killed, with the signal, when its runner is', async () => {
    const { world, founder } = await open({ coder: {} })
    await using _ = world
    const row = await founder.session('coder')
    process.kill(row.runnerPid ?? 0, 'SIGKILL')
    await expectEnd(founder, row, { reason: 'killed', exitCode: null, signal: 'SIGKILL' })
  })

  test('as founder-credentials when a credential of its role is missing, and names it', async () => {
    const { world, founder } = await open({ coder: { credentials: { 'forge-token': { env: 'FORGE_TOKEN' } } } })
    await using _ = world
    const { run } = await founder.launch('coder')
    const row = await founder.ended(run)
    expect(row).toMatchObject({ reason: 'founder-credentials', exitCode: 20 })
    expect(logOf(row)).toContain('forge-token')
    expect(await founder.trail({ kind: 'role.claimed' })).toEqual([])
  })

  test('in every way at once only once', async () => {
    const { world, founder } = await open({ coder: {} })
    await using _ = world
    const row = await founder.session('coder')
    const acts = [founder.stop('coder'), founder.kill(row.run), founder.stop('coder', 0), founder.kill(row.run)]
    process.kill(row.runnerPid ?? 0, 'SIGKILL')
    await Promise.allSettled(acts)
    const [end, ...others] = await founder.ends(row.run)
    expect(others).toEqual([])
    expect(['stopped', 'killed']).toContain(end?.reason)
    expect(await founder.trail({ subject: row.run, kind: 'session.ended' })).toHaveLength(1)
  })
})

describe.concurrent('a limit of time', () => {
  test('turnTimeout ends a run whose turn takes longer; its message is given again', async () => {
    const { world, founder } = await open({ coder: { limits: { turnTimeout: '3s' } } })
    await using _ = world
    const row = await founder.session('coder')
    expect(await founder.ask('coder', 'SAY quick')).toBe('quick')
    const id = await founder.send('coder', 'WAIT 600000')
    await expectEnd(founder, row, { reason: 'turn-timeout', exitCode: 26, signal: null })
    expect(['accepted', 'delivered']).toContain((await founder.message(id)).state)
  })

  test('idleTimeout ends a run that has nothing to do', async () => {
    const { world, founder } = await open({ coder: { limits: { idleTimeout: '3s' } } })
    await using _ = world
    await expectEnd(founder, await founder.session('coder'), { reason: 'idle-timeout', exitCode: 27, signal: null })
  })

  test('runTimeout ends a run, whatever it does', async () => {
    const { world, founder } = await open({ coder: { limits: { runTimeout: '3s' } } })
    await using _ = world
    const row = await founder.session('coder')
    await founder.send('coder', 'WAIT 600000')
    await expectEnd(founder, row, { reason: 'run-timeout', exitCode: 28, signal: null })
  })

  test('is kept over a runner that ignores the word', async () => {
    const { world, founder } = await open({ coder: { limits: { runTimeout: '3s' } } })
    await using _ = world
    const row = await founder.session('coder')
    process.kill(row.runnerPid ?? 0, 'SIGSTOP')
    await expectEnd(founder, row, { reason: 'run-timeout', exitCode: null, signal: 'SIGKILL' })
  })
})

describe.concurrent('turns', () => {
  test('turnsPerHour holds the next message back, and says until when', async () => {
    const { world, founder } = await open({ coder: { limits: { turnsPerHour: 2 } } })
    await using _ = world
    const row = await founder.session('coder')
    for (const text of ['one', 'two']) expect(await founder.ask('coder', `SAY ${text}`)).toBe(text)
    const id = await founder.send('coder', 'SAY three')
    await until('the third waits', async () => (await founder.show(row.run)).waitingUntil !== null)
    const inAnHour = Date.parse((await founder.show(row.run)).waitingUntil ?? '') - Date.now()
    expect(inAnHour).toBeGreaterThan(3_500_000)
    expect((await founder.message(id)).state).toBe('accepted')
  })

  test('pause holds messages back, resume gives them', async () => {
    const { world, founder } = await open({ coder: {}, other: {} })
    await using _ = world
    await founder.session('coder')
    await founder.session('other')
    await founder.pause('coder')
    const id = await founder.send('coder', 'SAY now')
    // an answer of another instance, asked later, is the proof that time for one has passed
    expect(await founder.ask('other', 'SAY mine')).toBe('mine')
    expect((await founder.message(id)).state).toBe('accepted')
    expect(await founder.ps()).toMatchObject([
      { instance: 'coder', paused: true },
      { instance: 'other', paused: false },
    ])
    await founder.resume('coder')
    expect(await founder.result(id)).toBe('now')
  })

  test('a stop that drains lets the running turn end and begins no other', async () => {
    await using world = new World()
    world.business = toBusiness({ coder: {} })
    world.configure()
    const host = await world.start()
    const founder = await world.founder()
    await founder.session('coder')
    const first = await founder.send('coder', 'WAIT 700\nSAY done')
    await until('its turn runs', async () => (await founder.message(first)).state === 'delivered')
    const second = await founder.send('coder', 'SAY never')
    await founder.client.call('shutdown', { drainMs: 20_000 })
    expect((await host.ended).code).toBe(0)
    await world.start()
    const next = await world.founder()
    expect([(await next.message(first)).state, (await next.message(second)).state]).toEqual(['answered', 'accepted'])
    expect(await next.result(first)).toBe('done')
  })

  test('a stop that drains answers who waits, before the door closes; who gets no answer is told how to wait again', async () => {
    await using world = new World()
    world.business = toBusiness({ coder: {}, reviewer: {} })
    world.configure()
    await world.start()
    const founder = await world.founder()
    await founder.session('coder')
    const answered = world.json(['ask', 'coder', 'WAIT 3000\nSAY drained'])
    const sent = async (): Promise<number> => (await founder.trail({ kind: 'message.sent' })).length
    await until('its turn runs', async () => (await sent()) === 1 && (await founder.message('m1')).state === 'delivered')
    const waiting = world.json(['ask', 'reviewer', 'SAY never'])
    await until('the other waits', async () => (await sent()) === 2)
    expect((await world.json(['bus', 'stop', '--drain', '20s'])).code).toBe(0)
    expect(await answered).toMatchObject({ code: 0, data: { result: { body: 'drained' } } })
    const { code, error } = await waiting
    const { id } = error.data as unknown as { id: string }
    expect([code, error.code, error.hint]).toEqual([10, 'host-not-running', `mosaic ask --resume ${id}`])
    await world.start()
    await world.must(['launch', 'reviewer'])
    expect(await world.must(['ask', '--resume', id])).toMatchObject({ result: { body: 'never' } })
  })

  test('a message that ended three runs is dead, its sender told, and the next run lives', async () => {
    const { world, founder } = await open({ coder: {} })
    await using _ = world
    const id = await founder.send('coder', 'RUN kill -9 $PPID')
    const seen: string[] = []
    for (let death = 0; death < 3; death++) {
      const { run } = await founder.launch('coder')
      const { reason, signal } = await founder.ended(run)
      seen.push(`${String(reason)} ${String(signal)} ${(await founder.message(id)).state}`)
    }
    expect(seen).toEqual(['killed SIGKILL accepted', 'killed SIGKILL accepted', 'killed SIGKILL dead'])
    expect((await founder.inbox()).filter((note) => note.subject === `message ${id} is dead`)).toHaveLength(1)
    await founder.session('coder')
    expect(await founder.ask('coder', 'SAY alive')).toBe('alive')
  })
})

test('a session leaves its lock free at its end, not before', async () => {
  const { world, founder } = await open({ coder: {} })
  await using _ = world
  const row = await founder.session('coder')
  const inode = String(lstatSync(join(row.envRoot, 'lock')).ino)
  expect(heldLocks()).toContain(inode)
  await founder.stop('coder')
  expect(heldLocks()).not.toContain(inode)
})
