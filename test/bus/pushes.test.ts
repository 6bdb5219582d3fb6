import { expect, test } from 'vitest'
import { company, FOUNDER, OID } from './company.ts'

const PUSH = { project: 'stack', task: 't-1', ref: 'refs/heads/work/t-1', commit: OID(1) }

async function open() {
  const c = company()
  const coder = c.start('coder')
  await c.broker.tasks.create(FOUNDER, { id: 't-1', title: 'a task', body: '', project: 'stack', assignee: 'coder' })
  await c.broker.pushes.check(coder, PUSH)
  return { ...c, coder }
}

test('a push whose run ended while its bytes came is not recorded, also when the seat has a new run', async () => {
  const c = await open()
  c.end(c.coder)
  const next = c.start('coder')
  await expect(c.broker.pushes.check(c.coder, PUSH)).rejects.toMatchObject({ code: 'unauthenticated' })
  await expect(c.broker.pushes.record(c.coder, PUSH)).rejects.toMatchObject({ code: 'unauthenticated' })
  expect([...c.store.pushes.list()]).toEqual([])
  expect(await c.broker.pushes.record(next, PUSH)).toMatchObject({ run: next.run, commit: PUSH.commit }) // the control
})

test('a push whose role lost the grant while its bytes came is not recorded', async () => {
  const c = await open()
  const had = c.grants.coder ?? []
  c.grants.coder = []
  await expect(c.broker.pushes.record(c.coder, PUSH)).rejects.toMatchObject({ code: 'not-permitted' })
  expect([...c.store.pushes.list()]).toEqual([])
  c.grants.coder = had
  expect(await c.broker.pushes.record(c.coder, PUSH)).toMatchObject({ id: 'p1' })
})

test('a task that was closed, or given to another, while its bytes came takes no push', async () => {
  const c = await open()
  await c.broker.tasks.assign(FOUNDER, { task: 't-1', instance: 'coder-2' })
  await expect(c.broker.pushes.record(c.coder, PUSH)).rejects.toMatchObject({ code: 'not-permitted' })
  await c.broker.tasks.assign(FOUNDER, { task: 't-1', instance: 'coder' })
  await c.broker.tasks.close(FOUNDER, { task: 't-1' })
  await expect(c.broker.pushes.record(c.coder, PUSH)).rejects.toMatchObject({ code: 'task-closed' })
  expect([...c.store.pushes.list()]).toEqual([])
})
