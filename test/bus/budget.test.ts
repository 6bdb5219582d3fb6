import { expect, test } from 'vitest'
import { createBudget } from '../../src/bus/budget.ts'
import { systemClock } from '../../src/core/clock.ts'
import { company, FOUNDER } from './company.ts'

const full = expect.objectContaining({ code: 'too-many-records' }) as Error

test('every record and message of a run counts, by number and by bytes; nothing counts of a claim that is held', async () => {
  const { store, broker, start } = company()
  const { budget } = broker
  let records = 0
  const spend = budget.spend.bind(budget)
  const coder = start('coder')
  Object.assign(budget, {
    spend(run: string | null, count: number, bytes: number) {
      if (run === coder.run) records += count
      spend(run, count, bytes)
    },
  })
  await broker.roles.claim(coder)
  await broker.roles.claim(coder)
  expect(records).toBe(1)
  await broker.roles.release(coder)
  await broker.roles.release(coder)
  expect(records).toBe(2)
  await broker.messages.send(coder, { to: 'coder', class: 'NOTE', body: 'to myself' })
  expect(records).toBe(4)
  for (let note = 0; note < 3; note++) {
    const { id } = await broker.messages.send(coder, { to: 'coder', class: 'NOTE', body: 'x'.repeat(64 * 1024) })
    expect(store.messages.get(id)).not.toBeNull()
  }
  budget.assertRoom(coder)
  budget.spend(coder.run, 0, 64 * 1024 * 1024 - 3 * 64 * 1024)
  expect(() => budget.assertRoom(coder)).toThrow(full)
  budget.assertRoom(FOUNDER)
})

test('what a transaction took back is not charged: a NOTE beside an act that fails late costs what it costs alone', async () => {
  const { store, broker, start } = company()
  const coder = start('coder')
  let records = 0
  Object.assign(broker.budget, {
    spend(run: string | null, count: number) {
      if (run === coder.run) records += count
    },
  })
  const note = broker.messages.send(coder, { to: 'pm', class: 'NOTE', body: 'hello' })
  const late = store.write(() => {
    store.trail.append({ kind: 'x.test', subject: null, actor: { kind: 'host', name: 'host', run: null }, body: {} })
    throw new Error('after a change')
  })
  await expect(late).rejects.toThrow('after a change')
  await note
  expect([records, [...store.trail.list()].map(({ kind }) => kind)]).toEqual([2, ['message.sent']])
})

test('the hour of a run ends, and a run that has ended is forgotten', () => {
  let nowMs = 0
  const budget = createBudget({ ...systemClock, monotonic: () => nowMs }, { records: 3, bytes: 100 })
  const run = { ...company().start('coder'), run: 'r1' }
  budget.spend('r1', 2, 99)
  budget.assertRoom(run)
  budget.spend('r1', 1, 0)
  expect(() => budget.assertRoom(run)).toThrow(full)
  nowMs += 3_600_000
  budget.assertRoom(run)
  budget.spend('r1', 1, 100)
  expect(() => budget.assertRoom(run)).toThrow(full)
  budget.forget('r1')
  budget.assertRoom(run)
})
