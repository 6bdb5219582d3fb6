import { expect, test } from 'vitest'
import { firstPage, firstPageOf } from '../../src/bus/pages.ts'
import { PAGE_BYTES, type Principal, type SessionPrincipal } from '../../src/protocol/common.ts'
import { type Company, company, FOUNDER, OID } from './company.ts'

const LONG = 'x'.repeat(60_000)

/** All pages of a list, one after the other; each holds as much as fits. */
async function pagesOf<Row extends object>(page: (after: string | undefined) => Row[] | Promise<Row[]>, idOf: (row: Row) => string): Promise<string[][]> {
  const pages: string[][] = []
  for (let after: string | undefined; ; after = pages.at(-1)?.at(-1)) {
    const rows = await page(after)
    if (rows.length === 0) return pages
    if (rows.some((row) => pages.flat().includes(idOf(row)))) throw new Error(`after ${String(after)} comes what was there before`)
    expect(Buffer.byteLength(JSON.stringify(rows))).toBeLessThanOrEqual(PAGE_BYTES + 1)
    pages.push(rows.map(idOf))
  }
}

const numbered = (letter: string, count: number): string[] => Array.from({ length: count }, (_, n) => `${letter}${String(n + 1)}`)

async function createTasks({ broker }: Company, count: number, more: object = {}): Promise<void> {
  for (let n = 1; n <= count; n++) await broker.tasks.create(FOUNDER, { title: 'a task', body: '', ...more })
}

test('a page holds what fits, counted in bytes as they are sent, and always a row', () => {
  const rows = (text: string, count: number) => Array.from({ length: count }, () => ({ text }))
  const bytes = Buffer.byteLength(JSON.stringify({ text: 'a' })) + 1
  expect(firstPage(rows('a', 100_000))).toHaveLength(Math.floor(PAGE_BYTES / bytes))
  expect(firstPage(rows('a', 3))).toHaveLength(3)
  expect(firstPage(rows('\u0001'.repeat(1000), 100))).toHaveLength(Math.floor(PAGE_BYTES / (6000 + 12)))
  expect(firstPage(rows('y'.repeat(2 * PAGE_BYTES), 2))).toHaveLength(1)
})

test('of rows that are read as they are taken, a page takes one more than it holds', () => {
  let taken = 0
  const endless = function* (): Generator<{ text: string }> {
    for (;;) {
      taken++
      yield { text: LONG }
    }
  }
  expect([firstPage(endless()).length, taken]).toEqual([4, 5])
})

test('between slices that hold nothing, others are served', async () => {
  const order: string[] = []
  const slices = function* (): Generator<{ n: number }[]> {
    for (let n = 0; n < 3; n++) {
      order.push(`slice ${String(n)}`)
      if (n === 0) setImmediate(() => order.push('another'))
      yield n === 2 ? [{ n }] : []
    }
  }
  expect(await firstPageOf(slices())).toEqual([{ n: 2 }])
  expect(order).toEqual(['slice 0', 'another', 'slice 1', 'slice 2'])
})

test('the inbox begins at the oldest message, and its pages leave none out', async () => {
  const { broker, start } = company()
  const [pm, coder] = [start('pm'), start('coder')]
  for (const who of [pm, coder]) for (let n = 0; n < 200; n++) await broker.messages.send(who, { to: 'founder', class: 'NOTE', body: 'n'.repeat(1500) })
  const pages = await pagesOf(
    (after) => broker.messages.inbox({ after }),
    (row) => row.id,
  )
  expect(pages.length).toBeGreaterThan(2)
  expect(pages.flat()).toEqual(numbered('m', 400))
})

test('tasks come in pages, of all, of a state and of an instance alike', async () => {
  const at = company()
  const { broker, start } = at
  await createTasks(at, 7, { body: LONG, assignee: 'coder' })
  await createTasks(at, 7, { body: LONG })
  const [pm, coder] = [start('pm'), start('coder')]
  await broker.tasks.close(FOUNDER, { task: 't-3' })
  const of = async (who: Principal, params: object = {}): Promise<string[][]> =>
    pagesOf(
      (after) => broker.tasks.list(who, { ...params, after }),
      (row) => row.id,
    )
  const all = numbered('t-', 14)
  expect(await of(FOUNDER)).toEqual([all.slice(0, 4), all.slice(4, 8), all.slice(8, 12), all.slice(12)])
  expect((await of(pm)).flat()).toEqual(all)
  expect(await of(coder)).toEqual([all.slice(0, 4), all.slice(4, 7)])
  expect((await of(coder, { state: 'open' })).flat()).toEqual(all.slice(0, 7).filter((id) => id !== 't-3'))
  expect((await of(FOUNDER, { state: 'closed' })).flat()).toEqual(['t-3'])
  const created = await broker.tasks.create(pm, { id: 'own', title: 'by pm', body: '', assignee: 'pm' })
  expect(broker.tasks.list({ ...pm, grants: new Set() }, {}).map(({ id }) => id)).toEqual([created.id])
  expect(() => broker.tasks.list(FOUNDER, { after: 'none' })).toThrow('no task')
})

async function pushed(at: Company, who: SessionPrincipal, task: string, count: number): Promise<void> {
  for (let n = 1; n <= count; n++) await at.broker.pushes.record(who, { project: 'stack', task, ref: `refs/heads/work/${task}`, commit: OID(n) })
}

test('pushes and review requests come in pages, of all and of a task', async () => {
  const at = company()
  const { broker, start } = at
  await createTasks(at, 2, { assignee: 'coder' })
  const [coder, reviewer] = [start('coder'), start('reviewer')]
  await pushed(at, coder, 't-1', 1500)
  await pushed(at, coder, 't-2', 2)
  const pushes = await pagesOf(
    (after) => broker.pushes.list({ after }),
    (row) => row.id,
  )
  expect([pushes.length > 1, pushes.flat()]).toEqual([true, numbered('p', 1502)])
  const ofTask = (task: string, after?: string) => broker.pushes.list({ task, after }).map(({ id }) => id)
  expect([ofTask('t-2'), ofTask('t-2', 'p1501'), ofTask('t-2', 'p1502')]).toEqual([['p1501', 'p1502'], ['p1502'], []])
  for (let n = 1; n <= 40; n++) {
    const { request } = await broker.reviews.request(coder, { task: 't-1' })
    await broker.reviews.verdict(reviewer, { request, commit: OID(1500), verdict: 'reject', note: 'n'.repeat(8000) })
  }
  await broker.reviews.request(coder, { task: 't-2' })
  const requests = await pagesOf(
    (after) => broker.reviews.list(FOUNDER, { after }),
    (row) => row.request,
  )
  expect([requests.length, requests.flat()]).toEqual([2, numbered('q', 41)])
  const seen = async (who: Principal, params: object): Promise<string[]> => (await broker.reviews.list(who, params)).map(({ request }) => request)
  expect(await seen(FOUNDER, { state: 'open' })).toEqual(['q41'])
  expect(await seen(FOUNDER, { task: 't-1', after: 'q39' })).toEqual(['q40'])
  expect(await seen({ ...reviewer, grants: new Set() }, { after: 'q38' })).toEqual(['q39', 'q40'])
  expect(await seen(start('coder-2'), {})).toEqual([])
})

test('what is owed comes in pages, and needs no text of a message', async () => {
  const { broker, start, store } = company()
  const [pm, coder] = [start('pm'), start('coder')]
  for (let n = 0; n < 150; n++) await broker.messages.send(pm, { to: 'coder', class: 'REQUEST', body: LONG })
  for (let n = 0; n < 150; n++) await broker.messages.send(coder, { to: 'reviewer', class: 'REQUEST', body: LONG })
  const of = (who: Principal): Promise<string[][]> =>
    pagesOf(
      (after) => broker.messages.owed(who, { after }),
      (row) => row.id,
    )
  expect((await of(FOUNDER)).map(({ length }) => length)).toEqual([200, 100])
  expect((await of(coder)).flat()).toEqual(numbered('m', 300))
  expect((await of(pm)).flat()).toEqual(numbered('m', 150))
  for (const row of store.messages.owed(null, null)) expect(row).not.toHaveProperty('body')
  expect(broker.messages.owed(pm, {})[0]).toMatchObject({ id: 'm1', from: 'pm', to: 'coder', overdue: false })
})

test('a thread comes in pages', async () => {
  const { broker, start } = company()
  const pm = start('pm')
  const { id } = await broker.messages.send(pm, { to: 'coder', class: 'REQUEST', body: LONG })
  for (let n = 0; n < 9; n++) await broker.messages.send(pm, { to: 'coder', class: 'NOTE', body: LONG, in_reply_to: id })
  const pages = await pagesOf(
    (after) => broker.messages.thread('m5', after),
    (row) => row.id,
  )
  expect(pages).toEqual([numbered('m', 4), ['m5', 'm6', 'm7', 'm8'], ['m9', 'm10']])
})

test('the own trail comes in pages that leave nothing out, whoever recorded it', async () => {
  const { broker, start } = company()
  const coder = start('coder')
  const record = (who: Principal, subject: string, text: string) => broker.records.record(who, { kind: 'x.a', subject, body: { text } })
  for (let n = 0; n < 10; n++) {
    await record(FOUNDER, coder.run, LONG)
    await record(coder, 'other', 'short')
    await record(FOUNDER, 'other', LONG)
    await record(coder, coder.run, 'both')
  }
  const pages = await pagesOf(
    (after) => broker.records.trail(coder, { after: after === undefined ? undefined : Number(after) }),
    (row) => String(row.seq),
  )
  expect(pages.length).toBe(3)
  expect(pages.flat().map(Number)).toEqual(Array.from({ length: 40 }, (_, n) => n + 1).filter((seq) => seq % 4 !== 3))
  expect(broker.records.trail(coder, { limit: 2, after: 1 }).map(({ seq }) => seq)).toEqual([2, 4])
})

test('who is owed an answer is told at the end of a run, however much it owes others', async () => {
  const { broker, start, end } = company()
  const coder = start('coder')
  for (let run = 0; run < 6; run++) {
    const pm = start('pm')
    for (let n = 0; n < 200; n++) await broker.messages.send(pm, { to: 'coder', class: 'REQUEST', body: '' })
    end(pm, 'stopped')
  }
  const reviewer = start('reviewer')
  const { id } = await broker.messages.send(reviewer, { to: 'coder', class: 'REQUEST', body: 'the 1201st' })
  expect(end(coder).notified).toEqual(['founder', 'pm', 'reviewer'])
  const told = (await broker.receive(broker.open(reviewer), { waitMs: 0, max: 100 }, new AbortController().signal)).map(({ body }) => body)
  expect(told).toEqual([expect.stringContaining(`Still owed to you: ${id}.`)])
})
