import { expect, test } from 'vitest'
import { company, FOUNDER } from './company.ts'

test('a role is held by one live run, until it is released or the run ends', async () => {
  const { broker, start, end, kinds } = company()
  const [first, second] = [start('coder'), start('coder')]
  expect(await broker.roles.claim(first)).toEqual({ role: 'coder', instance: 'coder' })
  await broker.roles.claim(first)
  await expect(broker.roles.claim(second)).rejects.toMatchObject({ code: 'role-held' })
  await broker.roles.release(second)
  await expect(broker.roles.claim(second)).rejects.toMatchObject({ code: 'role-held' })
  await broker.roles.release(first)
  await broker.roles.claim(second)
  expect(end(second).released).toBe(true)
  await broker.roles.claim(first)
  expect(kinds().filter((kind) => kind.startsWith('role.'))).toEqual(['role.claimed', 'role.released', 'role.claimed', 'role.released', 'role.claimed'])
})

test('agents lists every configured instance with its holder', async () => {
  const { broker, start } = company()
  const coder = start('coder')
  start('pm')
  await broker.roles.claim(coder)
  const rows = broker.roles.agents()
  expect(rows.map(({ instance, role, holder_run: run, state }) => [instance, role, run, state])).toEqual([
    ['pm', 'pm', null, 'running'],
    ['coder', 'coder', coder.run, 'running'],
    ['coder-2', 'coder', null, null],
    ['reviewer', 'reviewer', null, null],
  ])
  expect(rows[1]?.since).toMatch(/Z$/)
})

test('session.stop: only what the own instance launched', async () => {
  const { broker, start, store, kinds } = company()
  const pm = start('pm')
  const own = start('coder', pm)
  start('reviewer')
  expect(await broker.assertMayStop(pm, 'coder')).toBe(own.run)
  expect([...store.trail.list({ subject: own.run })]).toMatchObject([{ kind: 'action.allowed', body: { grant: 'role.launch', instance: 'coder' } }])
  await expect(broker.assertMayStop(pm, 'reviewer')).rejects.toMatchObject({ code: 'not-permitted' })
  await expect(broker.assertMayStop(pm, 'coder-2')).rejects.toMatchObject({ code: 'not-running' })
  await expect(broker.assertMayStop(own, 'coder')).rejects.toMatchObject({ code: 'not-permitted' })
  expect(kinds()).toEqual(['action.allowed', 'action.denied', 'action.denied'])
  await broker.assertMayStop(FOUNDER, 'reviewer')
})
