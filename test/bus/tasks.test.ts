import { describe, expect, test } from 'vitest'
import type { SessionPrincipal } from '../../src/protocol/common.ts'
import { type Company, company, FOUNDER, OID } from './company.ts'

const APPROVE = 'approve' as const
const task = (id: string, more: object = {}) => ({ id, title: `Task ${id}`, body: '', assignee: 'coder', ...more })
const push = ({ broker }: Company, who: SessionPrincipal, id: string, n: number) =>
  broker.pushes.record(who, { project: 'stack', task: id, ref: `refs/heads/work/${id}`, commit: OID(n) })

describe('tasks', () => {
  test('are created with an id or the next t-N, listed, assigned, closed, and recorded', async () => {
    const { broker, start, store, kinds } = company()
    const pm = start('pm')
    await broker.tasks.create(FOUNDER, task('t-2'))
    const made = await broker.tasks.create(pm, { title: 'second', body: 'text', project: 'stack' })
    const next = await broker.tasks.create(FOUNDER, { title: 'third', body: '' })
    expect([made.id, next.id]).toEqual(['t-3', 't-4'])
    expect(made).toMatchObject({ createdBy: 'pm', state: 'open', project: 'stack', assignee: null, latestPush: null, verdict: null, closedAt: null })
    expect(made).not.toHaveProperty('createdByKind')
    expect((await broker.tasks.assign(pm, { task: 't-3', instance: 'reviewer' })).assignee).toBe('reviewer')
    expect(await broker.tasks.close(pm, { task: 't-3', reason: 'done' })).toMatchObject({ state: 'closed', closedAt: expect.any(String) as string })
    expect(broker.tasks.list(FOUNDER, {}).map(({ id }) => id)).toEqual(['t-2', 't-3', 't-4'])
    expect(broker.tasks.list(pm, { state: 'open' }).map(({ id }) => id)).toEqual(['t-2', 't-4'])
    expect(kinds()).toEqual([
      'task.created',
      'action.allowed',
      'task.created',
      'task.created',
      'action.allowed',
      'task.assigned',
      'action.allowed',
      'task.closed',
    ])
    expect([...store.trail.list({ subject: 't-3' })].map(({ actor }) => actor.name)).toEqual(['pm', 'pm', 'pm', 'pm', 'pm', 'pm'])
  })

  test('refusals: exists, closed, no such task, project, instance, id', async () => {
    const { broker } = company()
    await broker.tasks.create(FOUNDER, task('t-1'))
    for (const [params, code] of [
      [task('t-1'), 'task-exists'],
      [task('T 1'), 'invalid-request'],
      [task('founder'), 'invalid-request'],
      [task('__proto__'), 'invalid-request'],
      [task('t-2', { project: 'none' }), 'project-not-found'],
      [task('t-2', { assignee: 'none' }), 'instance-not-found'],
    ] as const) {
      await expect(broker.tasks.create(FOUNDER, params)).rejects.toMatchObject({ code })
    }
    await expect(broker.tasks.close(FOUNDER, { task: 'none' })).rejects.toMatchObject({ code: 'task-not-found' })
    await broker.tasks.close(FOUNDER, { task: 't-1' })
    await expect(broker.tasks.close(FOUNDER, { task: 't-1' })).rejects.toMatchObject({ code: 'task-closed' })
    await expect(broker.tasks.assign(FOUNDER, { task: 't-1', instance: 'coder' })).rejects.toMatchObject({ code: 'task-closed' })
    await broker.tasks.create(FOUNDER, task('t-2'))
  })

  test('own tasks are seen without a grant, others’ only with task.read', async () => {
    const { broker, start, kinds } = company()
    const [coder, reviewer, pm] = [start('coder'), start('reviewer'), start('pm')]
    await broker.tasks.create(FOUNDER, task('t-1'))
    await broker.tasks.create(pm, task('t-2', { assignee: 'reviewer' }))
    expect([coder, reviewer, pm].map((who) => broker.tasks.list(who, {}).map(({ id }) => id))).toEqual([['t-1'], ['t-2'], ['t-1', 't-2']])
    expect((await broker.tasks.show(coder, { task: 't-1' })).id).toBe('t-1')
    await expect(broker.tasks.show(coder, { task: 't-2' })).rejects.toMatchObject({ code: 'not-permitted' })
    expect((await broker.tasks.show(pm, { task: 't-1' })).id).toBe('t-1')
    expect(kinds().filter((kind) => kind === 'action.denied')).toHaveLength(1)
  })

  test('an act needs its grant twice: at the launch and now', async () => {
    const { broker, start, grants, store } = company()
    const [pm, coder] = [start('pm'), start('coder')]
    await expect(broker.tasks.create(coder, task('t-1'))).rejects.toMatchObject({ code: 'not-permitted' })
    grants.coder?.push('task.create')
    await expect(broker.tasks.create(coder, task('t-1'))).rejects.toMatchObject({ code: 'not-permitted' })
    await broker.tasks.create(pm, task('t-1'))
    grants.pm = []
    await expect(broker.tasks.close(pm, { task: 't-1' })).rejects.toMatchObject({ code: 'not-permitted' })
    expect([...store.trail.list({ kind: 'action.denied' })].map(({ actor, subject, body }) => [actor.name, subject, body.grant])).toEqual([
      ['coder', 't-1', 'task.create'],
      ['coder', 't-1', 'task.create'],
      ['pm', 't-1', 'task.close'],
    ])
    expect((await broker.tasks.show(FOUNDER, { task: 't-1' })).state).toBe('open')
  })
})

describe('pushes', () => {
  test('a push is recorded, told to the creator, fixes project and assignee; the same tip adds nothing', async () => {
    const at = company()
    const { broker, start, store } = at
    const coder = start('coder')
    await broker.tasks.create(FOUNDER, { id: 't-1', title: 'one', body: '' })
    await broker.pushes.check(coder, { project: 'stack', task: 't-1' })
    const row = await push(at, coder, 't-1', 1)
    expect(row).toMatchObject({ task: 't-1', project: 'stack', ref: 'refs/heads/work/t-1', commit: OID(1), run: coder.run, instance: 'coder', latest: true })
    expect((await push(at, coder, 't-1', 1)).id).toBe(row.id)
    expect(await broker.tasks.show(FOUNDER, { task: 't-1' })).toMatchObject({ latestPush: row.id, project: 'stack', assignee: 'coder' })
    const [record, ...more] = store.trail.list({ kind: 'action.allowed' })
    expect(more).toEqual([])
    expect(record).toMatchObject({
      subject: 't-1',
      actor: { run: coder.run },
      body: { grant: 'git.push.working', project: 'stack', task: 't-1', ref: 'refs/heads/work/t-1', commit: OID(1), push: row.id },
    })
    expect((await broker.messages.inbox({})).map(({ body }) => body)).toEqual([expect.stringContaining(row.id)])
    const later = await push(at, coder, 't-1', 2)
    expect(broker.pushes.list({ task: 't-1' }).map(({ id, latest }) => [id, latest])).toEqual([
      [row.id, false],
      [later.id, true],
    ])
    expect(broker.pushes.show(row.id).latest).toBe(false)
    expect(() => broker.pushes.show('p99')).toThrow('no push')
  })

  test('refusals, before the bytes and again with them', async () => {
    const at = company()
    const { broker, start } = at
    const [coder, reviewer] = [start('coder'), start('reviewer')]
    await broker.tasks.create(FOUNDER, task('t-1'))
    await broker.tasks.create(FOUNDER, task('t-2', { assignee: 'coder-2' }))
    await broker.tasks.create(FOUNDER, task('t-3', { project: 'docs' }))
    await broker.tasks.create(FOUNDER, task('t-4'))
    await broker.tasks.close(FOUNDER, { task: 't-4' })
    for (const [who, target, code] of [
      [reviewer, { project: 'stack', task: 't-1' }, 'not-permitted'],
      [coder, { project: 'none', task: 't-1' }, 'project-not-found'],
      [coder, { project: 'stack', task: 'none' }, 'task-not-found'],
      [coder, { project: 'stack', task: 't-2' }, 'not-permitted'],
      [coder, { project: 'stack', task: 't-3' }, 'wrong-project'],
      [coder, { project: 'stack', task: 't-4' }, 'task-closed'],
    ] as const) {
      await expect(broker.pushes.check(who, target)).rejects.toMatchObject({ code })
      if (who === coder) await expect(broker.pushes.record(who, { ...target, ref: 'r', commit: OID(1) })).rejects.toMatchObject({ code })
    }
    expect(broker.pushes.list({})).toEqual([])
    await push(at, coder, 't-1', 1)
  })
})

describe('reviews', () => {
  async function pushed(options: Parameters<typeof company>[0] = {}) {
    const at = company(options)
    const coder = at.start('coder')
    const reviewer = at.start('reviewer')
    await at.broker.tasks.create(FOUNDER, task('t-1'))
    const first = await push(at, coder, 't-1', 1)
    return { ...at, at, coder, reviewer, first }
  }

  test('a pushed task closes only on an approval of its latest push', async () => {
    const { at, broker, coder, reviewer, first, store } = await pushed()
    await expect(broker.tasks.close(FOUNDER, { task: 't-1' })).rejects.toMatchObject({ code: 'not-approved' })
    const request = await broker.reviews.request(coder, { task: 't-1' })
    expect(request).toMatchObject({ task: 't-1', push: first.id, commit: OID(1), requestedBy: 'coder', state: 'open', verdict: null })
    expect((await broker.reviews.request(coder, { task: 't-1' })).request).toBe(request.request)
    const judged = await broker.reviews.verdict(reviewer, { request: request.request, commit: OID(1), verdict: APPROVE, note: 'good' })
    expect(judged).toMatchObject({ state: 'approved', verdict: 'approve', reviewer: 'reviewer', note: 'good' })
    await push(at, coder, 't-1', 2)
    expect(broker.reviews.show(request.request).state).toBe('stale')
    await expect(broker.tasks.close(FOUNDER, { task: 't-1' })).rejects.toMatchObject({ code: 'not-approved' })
    const again = await broker.reviews.request(coder, { task: 't-1' })
    await broker.reviews.verdict(reviewer, { request: again.request, commit: OID(2), verdict: 'reject', note: '' })
    await expect(broker.tasks.close(FOUNDER, { task: 't-1' })).rejects.toMatchObject({ code: 'not-approved' })
    const third = await broker.reviews.request(coder, { task: 't-1' })
    await broker.reviews.verdict(FOUNDER, { request: third.request, commit: OID(2), verdict: APPROVE, note: '' })
    expect((await broker.reviews.list(FOUNDER, {})).map(({ state, reviewer: by }) => [state, by])).toEqual([
      ['stale', 'reviewer'],
      ['rejected', 'reviewer'],
      ['approved', 'ada'],
    ])
    expect((await broker.tasks.close(FOUNDER, { task: 't-1' })).state).toBe('closed')
    expect([...store.trail.list({ kind: 'override' })]).toEqual([])
    await expect(broker.reviews.request(coder, { task: 't-1' })).rejects.toMatchObject({ code: 'task-closed' })
  })

  test('the founder overrides with a reason, and it is recorded; nobody else may', async () => {
    const { broker, start, grants, store } = await pushed()
    const pm = start('pm')
    grants.pm?.push('review.verdict')
    await expect(broker.tasks.close(pm, { task: 't-1', override: true, reason: 'x' })).rejects.toMatchObject({ code: 'not-permitted' })
    await expect(broker.tasks.close(FOUNDER, { task: 't-1', override: true })).rejects.toMatchObject({ code: 'invalid-request' })
    await broker.tasks.close(FOUNDER, { task: 't-1', override: true, reason: 'urgent' })
    expect([...store.trail.list({ kind: 'override' })]).toMatchObject([
      { subject: 't-1', actor: { kind: 'founder', name: 'ada' }, body: { reason: 'urgent', verdict: null } },
    ])
  })

  test('a verdict: once, on that commit, on the latest push, by somebody else', async () => {
    const { at, broker, coder, reviewer, start, grants } = await pushed()
    const { request } = await broker.reviews.request(coder, { task: 't-1' })
    const give = (who: Parameters<typeof broker.reviews.verdict>[0], more: object = {}) =>
      broker.reviews.verdict(who, { request, commit: OID(1), verdict: APPROVE, note: '', ...more })
    await expect(give(reviewer, { request: 'none' })).rejects.toMatchObject({ code: 'request-not-found' })
    await expect(give(reviewer, { commit: OID(9) })).rejects.toMatchObject({ code: 'invalid-request' })
    await expect(give(coder)).rejects.toMatchObject({ code: 'not-permitted' })
    grants.coder?.push('review.verdict')
    const judging = { ...coder, grants: new Set([...coder.grants, 'review.verdict' as const]) }
    await expect(give(judging)).rejects.toMatchObject({ code: 'own-work' })
    const launched = start('reviewer', coder)
    await expect(give(launched)).rejects.toMatchObject({ code: 'own-work' })
    await give(reviewer)
    await expect(give(reviewer, { verdict: 'reject' })).rejects.toMatchObject({ code: 'already-judged' })
    await push(at, coder, 't-1', 2)
    const open = await broker.reviews.request(coder, { task: 't-1' })
    await push(at, coder, 't-1', 3)
    await expect(give(reviewer, { request: open.request, commit: OID(2) })).rejects.toMatchObject({ code: 'stale' })
    expect(broker.reviews.show(open.request).verdict).toBeNull()
  })

  test('a request is its workers’; lists are own unless one judges or reads', async () => {
    const { broker, coder, reviewer, start } = await pushed()
    const other = start('coder-2')
    await expect(broker.reviews.request(other, { task: 't-1' })).rejects.toMatchObject({ code: 'not-permitted' })
    await expect(broker.reviews.request(reviewer, { task: 't-1' })).rejects.toMatchObject({ code: 'not-permitted' })
    await broker.tasks.create(FOUNDER, task('t-2'))
    await expect(broker.reviews.request(coder, { task: 't-2' })).rejects.toMatchObject({ code: 'push-not-found' })
    await broker.reviews.request(coder, { task: 't-1' })
    const seen = await Promise.all([coder, reviewer, other, FOUNDER].map(async (who) => (await broker.reviews.list(who, {})).length))
    expect(seen).toEqual([1, 1, 0, 1])
    expect(await broker.reviews.list(FOUNDER, { state: 'approved' })).toEqual([])
  })

  test('request and verdict are told to whom they concern, without a word of an agent; an approval sets its ref before the answer', async () => {
    const approved: string[] = []
    const { broker, coder, reviewer, receive, first } = await pushed({
      onApproved: ({ task: id, project }) => {
        approved.push(`${project} ${id}`)
        return Promise.resolve()
      },
    })
    const { request } = await broker.reviews.request(coder, { task: 't-1' })
    const [told] = await receive(broker.open(reviewer))
    for (const word of [request, 't-1', first.id, OID(1)]) expect(told?.body).toContain(word)
    await broker.reviews.verdict(reviewer, { request, commit: OID(1), verdict: APPROVE, note: 'words of the reviewer' })
    expect(approved).toEqual(['stack t-1'])
    const notes = [...(await broker.messages.inbox({})), ...(await receive(broker.open(coder)))]
    const verdicts = notes.filter(({ body }) => body.includes(request))
    expect(verdicts).toHaveLength(2)
    expect(verdicts.every(({ body, from_role: from }) => body.includes('approve') && from === 'host')).toBe(true)
    expect(JSON.stringify(notes)).not.toContain('words of the reviewer')
  })
})
