import { describe, expect, test } from 'vitest'
import { MAILBOX } from '../../src/bus/messages.ts'
import type { MessageRow } from '../../src/protocol/rows.ts'
import { company, FOUNDER } from './company.ts'

const request = (to: string, body = 'do it') => ({ to, class: 'REQUEST' as const, body })
const note = (to: string, body = 'fyi') => ({ to, class: 'NOTE' as const, body })
const result = (to: string, id: string, body = 'done') => ({ to, class: 'RESULT' as const, body, in_reply_to: id })

describe('sending', () => {
  test('a message is recorded with its sender, waits for its instance and is received once', async () => {
    const { broker, start, receive, kinds } = company()
    const pm = start('pm')
    const { id } = await broker.messages.send(pm, { ...request('coder'), subject: 'a subject' })
    expect(broker.messages.show(id)).toMatchObject({ state: 'accepted', from_instance: 'pm', from_run: pm.run, to: 'coder', subject: 'a subject' })
    const link = broker.open(start('coder'))
    expect(await receive(link)).toEqual([
      {
        id,
        at: expect.any(String) as string,
        from_role: 'pm',
        from_instance: 'pm',
        from_run: pm.run,
        class: 'REQUEST',
        body: 'do it',
        subject: 'a subject',
        in_reply_to: null,
      },
    ])
    expect(await receive(link)).toEqual([])
    expect(broker.messages.show(id).state).toBe('delivered')
    await broker.messages.ack(link.principal, [id])
    expect(broker.messages.show(id).state).toBe('acknowledged')
    expect(kinds()).toEqual(['message.sent'])
  })

  test('to nobody is unknown-recipient; failed goes with RESULT alone', async () => {
    const { broker } = company()
    await expect(broker.messages.send(FOUNDER, note('nobody'))).rejects.toMatchObject({ code: 'unknown-recipient' })
    await expect(broker.messages.send(FOUNDER, { ...note('coder'), failed: true })).rejects.toMatchObject({ code: 'invalid-request' })
    await broker.messages.send(FOUNDER, note('coder'))
  })

  test('the 201st unread message of one run to one recipient is mailbox-full; others and RESULTs go on', async () => {
    const { broker, start, receive } = company()
    const [pm, coder] = [start('pm'), start('coder')]
    const asked = await broker.messages.send(FOUNDER, request('pm'))
    const ids = await Promise.all(Array.from({ length: MAILBOX }, () => broker.messages.send(pm, note('coder'))))
    expect(new Set(ids.map(({ id }) => id)).size).toBe(MAILBOX)
    await expect(broker.messages.send(pm, note('coder'))).rejects.toMatchObject({ code: 'mailbox-full' })
    await broker.messages.send(pm, note('reviewer'))
    await broker.messages.send(FOUNDER, note('coder'))
    await broker.messages.send(pm, result('founder', asked.id))
    const [first] = await receive(broker.open(coder), 0, 1)
    await broker.messages.ack(coder, [first?.id ?? ''])
    await broker.messages.send(pm, note('coder'))
    await expect(broker.messages.send(pm, note('coder'))).rejects.toMatchObject({ code: 'mailbox-full' })
  })

  test('a reply names a message of its sender', async () => {
    const { broker, start } = company()
    const [pm, coder, reviewer] = [start('pm'), start('coder'), start('reviewer')]
    const { id } = await broker.messages.send(pm, request('coder'))
    for (const bad of [id, 'm999', '1e3', '-1', 'm9007199254740993', '']) {
      await expect(broker.messages.send(reviewer, { ...note('pm'), in_reply_to: bad })).rejects.toMatchObject({ code: 'message-not-found' })
    }
    await broker.messages.send(coder, { ...note('pm'), in_reply_to: id })
    expect(broker.messages.thread(id).map((row) => row.class)).toEqual(['REQUEST', 'NOTE'])
  })
})

describe('answers', () => {
  test('a RESULT acknowledges and answers its REQUEST in one transaction, once', async () => {
    const { broker, start, receive, kinds, store } = company()
    const coder = start('coder')
    const { id } = await broker.messages.send(FOUNDER, request('coder'))
    await receive(broker.open(coder))
    let commits = 0
    store.onChange(() => commits++)
    const answer = await broker.messages.send(coder, result('founder', id))
    expect(commits).toBe(1)
    expect(broker.messages.show(id).state).toBe('answered')
    expect(broker.messages.thread(answer.id).map((row) => [row.class, row.id])).toEqual([
      ['REQUEST', id],
      ['RESULT', answer.id],
    ])
    expect(kinds()).toEqual(['message.sent', 'message.sent', 'message.answered'])
    await expect(broker.messages.send(coder, result('founder', id))).rejects.toMatchObject({ code: 'not-owed' })
    expect(broker.messages.thread(id)).toHaveLength(2)
  })

  test('not-owed: another instance, another recipient, a NOTE, nothing, no such message', async () => {
    const { broker, start } = company()
    const [pm, coder] = [start('pm'), start('coder')]
    const { id } = await broker.messages.send(FOUNDER, request('coder'))
    const noted = await broker.messages.send(FOUNDER, note('coder'))
    const { in_reply_to: _none, ...nameless } = result('founder', id)
    for (const [who, message] of [
      [pm, result('founder', id)],
      [coder, result('pm', id)],
      [coder, result('founder', noted.id)],
      [coder, result('founder', 'm999')],
      [coder, nameless],
      [FOUNDER, result('coder', id)],
    ] as const) {
      await expect(broker.messages.send(who, message)).rejects.toMatchObject({ code: 'not-owed' })
    }
    await broker.messages.send(coder, result('founder', id))
  })

  test('owed: to and from an instance, all to the founder, overdue by the clock', async () => {
    let nowMs = Date.parse('2026-01-01T00:00:00Z')
    const { broker, start } = company({ clock: { now: () => nowMs, monotonic: () => 0 } })
    const [pm, reviewer] = [start('pm'), start('reviewer')]
    const { id } = await broker.messages.send(pm, { ...request('coder'), deadline: '2026-01-01T01:00:00+00:00' })
    const own = await broker.messages.send(FOUNDER, request('reviewer'))
    expect(broker.messages.owed(pm, {}).map((row) => [row.id, row.from, row.to, row.overdue])).toEqual([[id, 'pm', 'coder', false]])
    nowMs += 3_600_001
    expect(broker.messages.owed(pm, {})[0]?.overdue).toBe(true)
    expect(broker.messages.owed(reviewer, {}).map((row) => row.id)).toEqual([own.id])
    expect(broker.messages.owed(FOUNDER, {}).map((row) => row.id)).toEqual([id, own.id])
    expect(broker.messages.owedCount()).toBe(2)
    await broker.messages.send(reviewer, result('founder', own.id))
    expect(broker.messages.owedCount()).toBe(1)
  })

  test('the founder waits for a RESULT and for the inbox', async () => {
    const { broker, start } = company()
    const coder = start('coder')
    const { id } = await broker.messages.send(FOUNDER, request('coder'))
    expect(await broker.messages.result(id, { waitMs: 0 })).toBeNull()
    const waiting = [broker.messages.result(id, { waitMs: 60_000 }), broker.messages.inbox({ waitMs: 60_000 })] as const
    const answer = await broker.messages.send(coder, result('founder', id))
    expect((await waiting[0])?.id).toBe(answer.id)
    expect((await waiting[1]).map((row) => row.id)).toEqual([answer.id])
    expect(await broker.messages.inbox({ after: answer.id })).toEqual([])
    const gone = new AbortController()
    const aborted = broker.messages.inbox({ after: answer.id, waitMs: 60_000, signal: gone.signal })
    gone.abort()
    expect(await aborted).toEqual([])
  })
})

describe('receiving', () => {
  test('a waiting peer is given a message in its sender’s transaction', async () => {
    const { broker, start, receive, store } = company()
    const waiting = receive(broker.open(start('coder')), 60_000)
    await store.write(() => undefined)
    let commits = 0
    store.onChange(() => commits++)
    const { id } = await broker.messages.send(FOUNDER, note('coder'))
    expect(broker.messages.show(id).state).toBe('delivered')
    expect(commits).toBe(1)
    expect((await waiting).map((message) => message.id)).toEqual([id])
  })

  test('what is sent in the very turn in which a peer begins to wait reaches it, in order', async () => {
    const { broker, start, receive } = company()
    const waiting = receive(broker.open(start('coder')), 60_000)
    const sent = await Promise.all(['1', '2', '3'].map((body) => broker.messages.send(FOUNDER, note('coder', body))))
    expect((await waiting).map((message) => message.id)).toEqual(sent.map(({ id }) => id))
  })

  test('a wait ends with nothing: at its time, and when its connection is gone', async () => {
    const { broker, start, receive } = company()
    const link = broker.open(start('coder'))
    expect(await receive(link, 1)).toEqual([])
    const gone = new AbortController()
    const waiting = receive(link, 60_000, 100, gone.signal)
    gone.abort()
    expect(await waiting).toEqual([])
    const { id } = await broker.messages.send(FOUNDER, note('coder'))
    expect(broker.messages.show(id).state).toBe('accepted')
    expect((await receive(link)).map((message) => message.id)).toEqual([id])
  })

  test('two connections of a run share its messages, and what one had is given to the other when it closes', async () => {
    const { broker, start, receive } = company()
    const coder = start('coder')
    const [one, two] = [broker.open(coder), broker.open(coder)]
    const ids = await Promise.all(['1', '2', '3'].map(async (body) => (await broker.messages.send(FOUNDER, note('coder', body))).id))
    expect((await receive(one, 0, 2)).map(({ body }) => body)).toEqual(['1', '2'])
    expect((await receive(two)).map(({ body }) => body)).toEqual(['3'])
    await broker.messages.ack(coder, [ids[0] ?? ''])
    const waiting = receive(two, 60_000)
    await broker.connectionClosed(one)
    expect((await waiting).map(({ id }) => id)).toEqual([ids[1]])
    await expect(receive(one)).rejects.toMatchObject({ code: 'unauthenticated' })
  })

  test('a message that was on its way to a connection that died is not lost', async () => {
    const { broker, start, receive } = company()
    const coder = start('coder')
    const [one, two] = [broker.open(coder), broker.open(coder)]
    const gone = new AbortController()
    const waiting = receive(one, 60_000, 100, gone.signal)
    const sent = broker.messages.send(FOUNDER, note('coder'))
    const queued = receive(one, 60_000)
    gone.abort()
    const closed = broker.connectionClosed(one)
    const { id } = await sent
    await Promise.allSettled([waiting, queued, closed])
    expect((await receive(two)).map((message) => message.id)).toEqual([id])
  })

  test('pages stop at 256 KiB, and the rest comes next', async () => {
    const { broker, start, receive } = company()
    const link = broker.open(start('coder'))
    const body = '\u0001'.repeat(60_000)
    for (let n = 0; n < 3; n++) await broker.messages.send(FOUNDER, note('coder', body))
    for (let n = 0; n < 8; n++) await broker.messages.send(FOUNDER, note('coder', 'x'.repeat(64 * 1024)))
    const sizes: number[] = []
    for (let page = await receive(link); page.length > 0; page = await receive(link)) sizes.push(page.length)
    expect(sizes).toEqual([1, 1, 1, 3, 3, 2])
  })

  test('a paused instance is given nothing until it is poked, and nothing overtakes', async () => {
    let may = false
    const given: [string, number][] = []
    const { broker, start, receive } = company({
      policy: { room: (instance) => (may || instance === 'pm' ? 100 : 0), delivered: (instance, _run, messages) => given.push([instance, messages]) },
    })
    const link = broker.open(start('coder'))
    await broker.messages.send(FOUNDER, note('coder', '1'))
    expect(await receive(link)).toEqual([])
    const waiting = receive(link, 60_000)
    await broker.messages.send(FOUNDER, note('coder', '2'))
    const pm = receive(broker.open(start('pm')), 60_000)
    await broker.messages.send(FOUNDER, note('pm', 'control'))
    expect((await pm).map(({ body }) => body)).toEqual(['control'])
    may = true
    await broker.messages.send(FOUNDER, note('coder', '3'))
    await broker.poke('coder')
    const rest = await receive(link)
    expect([...(await waiting), ...rest].map(({ body }) => body)).toEqual(['1', '2', '3'])
    expect(given.reduce((sum, [, messages]) => sum + messages, 0)).toBe(4)
  })

  test('no more are given than the policy has room for, by one receive, by several at once, or to who waits', async () => {
    let room = 3
    const given: number[] = []
    const { broker, start, receive } = company({
      policy: {
        room: () => room,
        delivered(_instance, _run, messages) {
          room -= messages
          given.push(messages)
        },
      },
    })
    const coder = start('coder')
    const [one, two] = [broker.open(coder), broker.open(coder)]
    for (let n = 0; n < 6; n++) await broker.messages.send(FOUNDER, note('coder', String(n)))
    expect((await receive(one)).map(({ body }) => body)).toEqual(['0', '1', '2'])
    expect(await receive(one)).toEqual([])
    room = 2
    expect((await Promise.all([receive(one), receive(two)])).flat().map(({ body }) => body)).toEqual(['3', '4'])
    const waiting = [receive(one, 60_000), receive(two, 60_000)]
    room = 1
    await broker.poke('coder')
    expect((await Promise.race(waiting)).map(({ body }) => body)).toEqual(['5'])
    expect([room, given.reduce((sum, messages) => sum + messages, 0)]).toEqual([0, 6])
    await Promise.all([one, two].map((link) => broker.connectionClosed(link)))
    await Promise.all(waiting)
  })

  test('ack: of another instance’s message is message-not-found, and acknowledges nothing', async () => {
    const { broker, start } = company()
    const [coder, pm] = [start('coder'), start('pm')]
    const mine = await broker.messages.send(FOUNDER, note('coder'))
    const other = await broker.messages.send(FOUNDER, note('pm'))
    await expect(broker.messages.ack(coder, [mine.id, other.id])).rejects.toMatchObject({ code: 'message-not-found' })
    expect(broker.messages.show(mine.id).state).toBe('accepted')
    await broker.messages.ack(coder, [mine.id])
    await broker.messages.ack(coder, [mine.id])
    await broker.messages.ack(pm, [other.id])
    expect([mine.id, other.id].map((id) => broker.messages.show(id).state)).toEqual(['acknowledged', 'acknowledged'])
  })
})

describe('ends', () => {
  const inbox = (broker: ReturnType<typeof company>['broker']): Promise<MessageRow[]> => broker.messages.inbox({})

  test('what a run had and did not acknowledge is given to the next; the rest stays as it is', async () => {
    const { broker, start, end, receive } = company()
    const coder = start('coder')
    const link = broker.open(coder)
    const ids = await Promise.all(['1', '2', '3'].map(async (body) => (await broker.messages.send(FOUNDER, request('coder', body))).id))
    await receive(link, 0, 2)
    await broker.messages.ack(coder, [ids[0] ?? ''])
    end(coder)
    await expect(receive(link)).rejects.toMatchObject({ code: 'unauthenticated' })
    expect(link.closed()).toBe(true)
    await broker.connectionClosed(link)
    const next = broker.open(start('coder'))
    expect((await receive(next)).map(({ id }) => id)).toEqual(ids.slice(1))
  })

  test('a wait of a run that ends is over, and takes nothing more', async () => {
    const { broker, start, end, receive } = company()
    const coder = start('coder')
    const waiting = receive(broker.open(coder), 60_000)
    await broker.messages.send(FOUNDER, note('pm'))
    end(coder)
    expect(await waiting).toEqual([])
    const { id } = await broker.messages.send(FOUNDER, note('coder'))
    expect(broker.messages.show(id).state).toBe('accepted')
  })

  test('after three ends of runs that had it a message is dead, and its sender is told; orderly ends do not count', async () => {
    const { broker, start, end, receive } = company()
    const pm = start('pm')
    const { id } = await broker.messages.send(pm, request('coder'))
    for (const reason of ['stopped', 'killed', 'host-lost', 'failed', 'stopped'] as const) {
      const coder = start('coder')
      const link = broker.open(coder)
      expect((await receive(link)).map((message) => message.id)).toEqual([id])
      // whether the connection closes before or after the end makes no difference
      if (reason === 'failed') await broker.connectionClosed(link)
      end(coder, reason)
    }
    expect(broker.messages.show(id).state).toBe('accepted')
    const last = start('coder')
    await receive(broker.open(last))
    end(last, 'turn-timeout')
    expect(broker.messages.show(id).state).toBe('dead')
    expect(broker.messages.owedCount()).toBe(0)
    expect(await receive(broker.open(start('coder')))).toEqual([])
    const notes = await receive(broker.open(pm))
    expect(notes.filter(({ from_role: from, body }) => from === 'host' && body.includes(`${id} to coder is dead`))).toHaveLength(1)
    await expect(broker.messages.send(start('coder'), result('pm', id))).rejects.toMatchObject({ code: 'not-owed' })
  })

  test('the end is told to the launcher and to everyone it owed, once each, in closed words', async () => {
    const { broker, start, end, receive } = company()
    const pm = start('pm')
    const coder = start('coder', pm)
    await broker.roles.claim(coder)
    const words = 'secret words of an agent'
    const own = await broker.messages.send(FOUNDER, request('coder', words))
    await broker.messages.send(pm, request('coder', words))
    await broker.messages.send(FOUNDER, note('coder'))
    expect(end(coder)).toEqual({ released: true, notified: ['pm', 'founder'] })
    const [told] = await inbox(broker)
    expect(told).toMatchObject({ class: 'NOTE', from_role: 'host', from_instance: 'host', from_run: null })
    expect(told?.body).toContain(coder.run)
    expect(told?.body).toContain(own.id)
    expect(await inbox(broker)).toHaveLength(1)
    expect(JSON.stringify(await receive(broker.open(pm)))).not.toContain(words)
    expect(end(start('reviewer'))).toEqual({ released: false, notified: ['founder'] })
  })

  test('the first REQUEST carries the task, then the request', () => {
    const { broker, store } = company()
    const { id: task } = store.writeNow(() =>
      store.tasks.insert({ id: 't-1', title: 'Write it', body: 'SAY hi', project: null, assignee: 'coder', createdBy: 'ada', createdByKind: 'founder' }),
    )
    const first = (about: Parameters<typeof broker.messages.firstRequest>[2]) => store.writeNow(() => broker.messages.firstRequest(FOUNDER, 'coder', about))
    const bodies = [first({ task, request: null }), first({ task: null, request: 'please' }), first({ task, request: 'please' })].map(
      (id) => broker.messages.show(id ?? '').body,
    )
    expect(bodies).toEqual(['Task t-1: Write it\n\nSAY hi', 'please', 'Task t-1: Write it\n\nSAY hi\n\nplease'])
    expect(first({ task: null, request: null })).toBeNull()
  })
})
