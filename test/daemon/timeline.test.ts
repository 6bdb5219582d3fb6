import { describe, expect, test } from 'vitest'
import { createConsoleLine, toLogLine, toTrailLine } from '../../src/daemon/event-lines.ts'
import { readTimelinePage, type TimelineFilter, type TimelineSource } from '../../src/daemon/timeline.ts'
import type { LogRow, TrailRow } from '../../src/protocol/rows.ts'

const at = (second: number): string => `2026-11-30T10:00:0${String(second)}.000Z`
const log = (seq: number, more: Partial<LogRow> & Pick<LogRow, 'event'>): LogRow => ({
  seq,
  at: at(seq),
  run: 'r00000000000a',
  instance: 'coder',
  task: 't-1',
  ...more,
})
const trail = (seq: number, kind: string, body: TrailRow['body'], name = 'coder'): TrailRow => ({
  seq,
  at: at(seq),
  kind,
  subject: 't-1',
  actor: { kind: 'session', name, run: 'r00000000000a' },
  body,
  hash: '',
})

const LOG = [
  log(1, { event: 'launch', launchedBy: 'pm', harness: 'script', model: 'm', env: 'created' }),
  log(2, { event: 'refused', run: null, code: 'capacity-full', why: '1 of 1', task: null, instance: 'reviewer' }),
  log(3, { event: 'checkout-kept', project: 'stack', reason: 'dirty' }),
  log(9, { event: 'end', reason: 'stopped', exitCode: 0, signal: null }),
]
const TRAIL = [
  trail(4, 'action.allowed', { grant: 'git.push.working', push: 'p1', commit: 'abcdef0123456789', ref: 'refs/heads/work/t-1' }),
  trail(5, 'action.allowed', { grant: 'role.launch' }),
  trail(6, 'review.verdict', { verdict: 'approve', commit: 'abcdef0123456789', request: 'q1' }, 'reviewer'),
  trail(7, 'task.closed', { override: true }, 'ada'),
  trail(8, 'role.claimed', {}),
]

const SLICE = 100

/** Slices of so many numbers each; those of the trail that nobody asks for are left out, as the store leaves them out. */
function sliced<Row extends { readonly seq: number }>(rows: readonly Row[], after: number): { rows: Row[]; reached: number | null } {
  const reached = after + SLICE
  return { rows: rows.filter(({ seq }) => seq > after && seq <= reached), reached: reached >= (rows.at(-1)?.seq ?? 0) ? null : reached }
}

const sourceOf = (log: readonly LogRow[], records: readonly TrailRow[]): TimelineSource => ({
  log: (after) => sliced(log, after),
  trail: (after) => sliced(records, after),
})
const page = (filter: TimelineFilter, log = LOG, records = TRAIL) => readTimelinePage(sourceOf(log, records), filter, new AbortController().signal)

describe('the timeline', () => {
  test('joins launch log and trail in order of time, and leaves out what tells nothing of its own', async () => {
    expect((await page({})).map((row) => [row.kind, row.task, row.ref])).toEqual([
      ['launch', 't-1', null],
      ['refused', null, null],
      ['push', 't-1', 'p1'],
      ['verdict', 't-1', 'q1'],
      ['close', 't-1', null],
      ['end', 't-1', null],
    ])
  })
  test('has the start and the stop of the host, of no task', async () => {
    const records = [trail(1, 'host.started', { version: '0.1.0', pid: 7 }, 'host'), trail(2, 'host.stopped', {}, 'host')]
    expect((await page({}, [], records)).map(({ kind, text, task }) => [kind, text, task])).toEqual([
      ['host', 'the bus host started (mosaic 0.1.0, pid 7)', null],
      ['host', 'the bus host stopped', null],
    ])
    expect(await page({ task: 't-1' }, [], records)).toEqual([])
  })
  test('can be of one task, or since a time', async () => {
    expect((await page({ task: 't-1' })).every((row) => row.task === 't-1')).toBe(true)
    expect((await page({ sinceMs: Date.parse(at(7)) })).map((row) => row.kind)).toEqual(['close', 'end'])
  })
  test('says of an override that it was one', async () => {
    expect((await page({}, [])).find((row) => row.kind === 'close')?.text).toContain('over the missing approval')
  })
  test('is read in slices, between which others are served, and no further than somebody waits for it', async () => {
    const untold = Array.from({ length: 5000 }, (_, n) => log(n + 1, { event: 'checkout-kept', at: new Date(n).toISOString() }))
    let reads = 0
    const source = { ...sourceOf([], []), log: (after: number) => (reads++, sourceOf(untold, []).log(after)) }
    expect(await readTimelinePage(source, {}, new AbortController().signal)).toEqual([])
    const all = reads
    reads = 0
    const gone = new AbortController()
    const reading = readTimelinePage(source, {}, gone.signal)
    setImmediate(() => gone.abort())
    await expect(reading).rejects.toThrow()
    expect([reads > 0, reads < all / 2]).toEqual([true, true])
  })
  test('goes on over a long stretch of the trail that has nothing to tell', async () => {
    const records = [trail(1, 'host.started', { version: '0.1.0', pid: 7 }, 'host'), trail(5 * SLICE, 'host.stopped', {}, 'host')]
    const rows = await page({}, [], records)
    expect(rows.map(({ cursor }) => cursor)).toEqual(['0.1', `0.${String(5 * SLICE)}`])
    expect(await page({ after: rows.at(-1)?.cursor }, [], records)).toEqual([])
  })
  test('comes in pages: each after the cursor of the last row, none missed, none twice, an empty one last', async () => {
    const launches = Array.from({ length: 1700 }, (_, n) => log(n + 1, { event: 'launch', at: new Date(n * 2).toISOString() }))
    const verdicts = Array.from({ length: 1300 }, (_, n) => ({ ...trail(n + 1, 'review.verdict', { verdict: 'approve' }), at: new Date(n * 3).toISOString() }))
    const seen: string[] = []
    let after: string | undefined
    for (;;) {
      const rows = await page({ after }, launches, verdicts)
      if (rows.length === 0) break
      seen.push(...rows.map((row) => row.at))
      after = rows.at(-1)?.cursor
    }
    expect(seen).toHaveLength(3000)
    expect(seen).toEqual([...seen].sort())
  })
})

describe('the lines of bus start', () => {
  test('one an event, for what a person wants to see', () => {
    expect(LOG.map(toLogLine)).toEqual([
      'coder  launched by pm: run r00000000000a (script, m, env created)',
      'reviewer  launch refused: capacity-full (1 of 1)',
      'coder  clone of stack kept as it is: dirty',
      'coder  ended: stopped, run r00000000000a',
    ])
    expect(TRAIL.map(toTrailLine)).toEqual([null, null, 'reviewer  judged task t-1: approve', 'ada  closed task t-1', null])
  })
  test('escape what an agent wrote', () => {
    expect(toTrailLine(trail(1, 'message.sent', { class: 'NOTE', to: '\u001b[31mpm' }))).not.toContain('\u001b')
    expect(toTrailLine(trail(1, 'message.sent', { class: 'NOTE', to: 'pm' }))).toContain('to pm')
  })
  test('begin with the time of the machine', () => {
    const toConsoleLine = createConsoleLine()
    expect([at(1), at(1), at(2)].map((time) => toConsoleLine(time, 'x').slice(5))).toEqual([':01  x', ':01  x', ':02  x'])
    expect(toConsoleLine(at(1), 'x')).toMatch(/^\d\d:\d\d:01 {2}x$/)
  })
})
