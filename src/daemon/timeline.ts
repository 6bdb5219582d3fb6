import type { LogRow, TimelineRow, TrailRow } from '../protocol/rows.ts'

const text = (value: unknown): string => (typeof value === 'string' ? value : '')
const orNull = (value: unknown): string | null => (typeof value === 'string' ? value : null)

const endOf = (row: LogRow): string => {
  const how = row.signal === null ? `exit ${String(row.exitCode)}` : text(row.signal)
  return `${row.instance} ended: ${text(row.reason)}${row.exitCode === null && row.signal === null ? '' : ` (${how})`}`
}

/** A row without its place in the two records. */
type Entry = Omit<TimelineRow, 'cursor'>

/** A line of the launch log as a line of the timeline; null: it tells nothing of its own. */
function fromLog(row: LogRow): Entry | null {
  const common = { at: row.at, run: row.run, instance: row.instance, task: orNull(row.task), ref: null }
  switch (row.event) {
    case 'launch':
      return {
        ...common,
        kind: 'launch',
        text: `${row.instance} launched by ${text(row.launchedBy)} (${text(row.harness)}, ${text(row.model)}, env ${text(row.env)})`,
      }
    case 'refused':
      return { ...common, kind: 'refused', text: `${row.instance} launch refused: ${text(row.code)} (${text(row.why)})` }
    case 'end':
      return { ...common, kind: 'end', text: endOf(row) }
    case 'checkout-kept':
      return null
  }
}

type FromTrail = (row: TrailRow) => Pick<TimelineRow, 'kind' | 'text' | 'task' | 'ref'> | null

const name = (row: TrailRow): string => row.actor.name

const ofHost =
  (words: (row: TrailRow) => string): FromTrail =>
  (row) => ({ kind: 'host', text: words(row), task: null, ref: null })

const FROM_TRAIL: Readonly<Record<string, FromTrail>> = {
  'host.started': ofHost(({ body }) => `the bus host started (mosaic ${text(body.version)}, pid ${String(Number(body.pid))})`),
  'host.stopped': ofHost(() => 'the bus host stopped'),
  'message.sent': (row) => ({
    kind: 'message',
    text: `${text(row.body.class)} ${row.subject ?? ''} from ${name(row)} to ${text(row.body.to)}`,
    task: null,
    ref: row.subject,
  }),
  'action.allowed': (row) =>
    row.body.grant === 'git.push.working' && typeof row.body.push === 'string'
      ? {
          kind: 'push',
          text: `${name(row)} pushed ${text(row.body.commit).slice(0, 12)} to ${text(row.body.ref)}`,
          task: row.subject,
          ref: text(row.body.push),
        }
      : null,
  'review.requested': (row) => ({
    kind: 'request',
    text: `${name(row)} asked for a review of ${row.subject ?? ''}`,
    task: row.subject,
    ref: orNull(row.body.request),
  }),
  'review.verdict': (row) => ({
    kind: 'verdict',
    text: `${name(row)} judged ${row.subject ?? ''}: ${text(row.body.verdict)} of ${text(row.body.commit).slice(0, 12)}`,
    task: row.subject,
    ref: orNull(row.body.request),
  }),
  'task.closed': (row) => ({
    kind: 'close',
    text: `${name(row)} closed ${row.subject ?? ''}${row.body.override === true ? ' over the missing approval' : ''}`,
    task: row.subject,
    ref: null,
  }),
}

function fromTrail(row: TrailRow): Entry | null {
  const show = Object.hasOwn(FROM_TRAIL, row.kind) ? FROM_TRAIL[row.kind] : undefined
  const shown = show?.(row) ?? null
  return shown === null ? null : { at: row.at, run: row.actor.run, instance: row.actor.kind === 'session' ? row.actor.name : null, ...shown }
}

interface Numbered {
  readonly seq: number
  readonly at: string
}

/** Some rows of a record. */
interface Slice<Row> {
  readonly rows: readonly Row[]
  /** The number up to which they are all that there is to tell; null: that is the end of the record. */
  readonly reached: number | null
}

/** One of the two records, read forward in slices. */
interface Stream<Row extends Numbered> {
  /** The next row, and none once it is read to its end. */
  readonly peek: () => Promise<Row | undefined>
  readonly take: (row: Row) => void
  /** The number of the last row that was taken. */
  readonly at: () => number
}

function createStream<Row extends Numbered>(read: (after: number) => Slice<Row>, from: number): Stream<Row> {
  let slice: Slice<Row> = { rows: [], reached: from }
  let next = 0
  let taken = from
  return {
    async peek() {
      while (next >= slice.rows.length && slice.reached !== null) {
        slice = read(slice.reached)
        next = 0
        // a long record is read in many turns of the loop: others are served meanwhile
        await new Promise(setImmediate)
      }
      return slice.rows[next]
    },
    take({ seq }) {
      taken = seq
      next++
    },
    at: () => taken,
  }
}

export interface TimelineSource {
  readonly log: (after: number) => Slice<LogRow>
  readonly trail: (after: number) => Slice<TrailRow>
}

export interface TimelineFilter {
  /** An epoch time. */
  readonly sinceMs?: number | undefined
  readonly task?: string | undefined
  /** The cursor of the last row that was had. */
  readonly after?: string | undefined
}

const PAGE_ROWS = 500
const CURSOR = /^(\d{1,15})\.(\d{1,15})$/

/** "What happened last night?": launch log and trail merged by time, oldest first, a page at a time. An empty page is the last. Rejects when nobody waits for it any more. */
export async function readTimelinePage(source: TimelineSource, { sinceMs, task, after = '0.0' }: TimelineFilter, signal: AbortSignal): Promise<TimelineRow[]> {
  const [, logAfter = '0', trailAfter = '0'] = CURSOR.exec(after) ?? []
  const log = createStream(source.log, Number(logAfter))
  const trail = createStream(source.trail, Number(trailAfter))
  const since = sinceMs === undefined ? '' : new Date(sinceMs).toISOString()
  /** The earlier of the two next rows; null: it tells nothing of its own; none at the end of both. */
  const next = async (): Promise<Entry | null | undefined> => {
    const [logged, recorded] = [await log.peek(), await trail.peek()]
    if (logged !== undefined && (recorded === undefined || logged.at <= recorded.at)) {
      log.take(logged)
      return fromLog(logged)
    }
    if (recorded === undefined) return undefined
    trail.take(recorded)
    return fromTrail(recorded)
  }
  const isAsked = (entry: Entry): boolean => entry.at >= since && (task === undefined || entry.task === task)
  const rows: TimelineRow[] = []
  for (let made = await next(); made !== undefined; made = await next()) {
    signal.throwIfAborted()
    if (made !== null && isAsked(made)) rows.push({ ...made, cursor: `${String(log.at())}.${String(trail.at())}` })
    if (rows.length === PAGE_ROWS) break
  }
  return rows
}
