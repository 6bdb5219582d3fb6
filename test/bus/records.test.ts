import { expect, test } from 'vitest'
import { TRAIL_KINDS } from '../../src/protocol/common.ts'
import { company, FOUNDER } from './company.ts'

const record = (kind: string, more: object = {}) => ({ kind, body: {}, ...more })

test('only own kinds are recorded: every kind of the host is reserved', async () => {
  const { broker, start, kinds } = company()
  const coder = start('coder')
  for (const kind of [...TRAIL_KINDS, 'push', 'verdict', 'y.own', 'X.own', '']) {
    await expect(broker.records.record(coder, record(kind))).rejects.toMatchObject({ code: 'reserved-kind' })
  }
  for (const bad of [
    record('x.'),
    record('x.A'),
    record('x.a b'),
    record('x.a', { subject: 'a\nb' }),
    record('x.a', { body: { text: 'x'.repeat(65 * 1024) } }),
  ]) {
    await expect(broker.records.record(coder, bad)).rejects.toMatchObject({ code: 'invalid-request' })
  }
  expect(await broker.records.record(coder, record('x.build-ok', { subject: 't-1', body: { n: 1 } }))).toEqual({ seq: 1 })
  expect(kinds()).toEqual(['x.build-ok'])
})

test('600 records in any hour of a run, none of the founder’s counted', async () => {
  let nowMs = 0
  const { broker, start } = company({ clock: { now: () => nowMs, monotonic: () => nowMs } })
  const [coder, other] = [start('coder'), start('coder-2')]
  await Promise.all(Array.from({ length: 600 }, () => broker.records.record(coder, record('x.a'))))
  await expect(broker.records.record(coder, record('x.a'))).rejects.toMatchObject({ code: 'too-many-records' })
  await broker.records.record(other, record('x.a'))
  await Promise.all(Array.from({ length: 601 }, () => broker.records.record(FOUNDER, record('x.a'))))
  nowMs += 3_600_000
  await broker.records.record(coder, record('x.a'))
})

test('denials of a run are recorded, but not without end', async () => {
  const { broker, start, store } = company()
  const coder = start('coder')
  const tries = Array.from({ length: 650 }, () => broker.tasks.create(coder, { title: 't', body: '' }))
  const results = await Promise.allSettled(tries)
  expect(results.every(({ status }) => status === 'rejected')).toBe(true)
  expect(store.trail.head().records).toBe(600)
})

test('the own trail is what the run did and what is about it; trail.read shows all', async () => {
  const { broker, start } = company()
  const [coder, pm] = [start('coder'), start('pm')]
  await broker.roles.claim(coder)
  await broker.roles.claim(pm)
  await broker.records.record(coder, record('x.mine', { subject: 'sub' }))
  await broker.records.record(FOUNDER, record('x.about', { subject: coder.run }))
  const seqs = (who: Parameters<typeof broker.records.trail>[0], params: object = {}) => broker.records.trail(who, params).map(({ seq }) => seq)
  expect(seqs(coder)).toEqual([1, 3, 4])
  expect(seqs(coder, { after: 1, limit: 1 })).toEqual([3])
  expect(seqs(coder, { kind: 'x.mine' })).toEqual([3])
  expect(seqs(coder, { subject: coder.run })).toEqual([1, 4])
  expect(seqs(coder, { subject: pm.run })).toEqual([])
  expect(seqs(pm)).toEqual([1, 2, 3, 4])
  expect(seqs(FOUNDER, { subject: pm.run })).toEqual([2])
})
