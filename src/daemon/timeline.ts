import type { LogRow, TimelineRow, TrailRow } from '../protocol/rows.ts'

const text = (value: unknown): string => (typeof value === 'string' ? value : '')
const orNull = (value: unknown): string | null => (typeof value === 'string' ? value : null)

const endOf = (row: LogRow): string => {
  const how = row.signal === null ? `exit ${String(row.exitCode)}` : text(row.signal)
  return `${row.instance} ended: ${text(row.reason)}${row.exitCode === null && row.signal === null ? '' : ` (${how})`}`
}

/** A line of the launch log as a line of the timeline; null: it tells nothing of its own. */
function fromLog(row: LogRow): TimelineRow | null {
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

const FROM_TRAIL: Readonly<Record<string, FromTrail>> = {
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

function fromTrail(row: TrailRow): TimelineRow | null {
  const show = Object.hasOwn(FROM_TRAIL, row.kind) ? FROM_TRAIL[row.kind] : undefined
  const shown = show?.(row) ?? null
  return shown === null ? null : { at: row.at, run: row.actor.run, instance: row.actor.kind === 'session' ? row.actor.name : null, ...shown }
}

/** "What happened last night?": launch log and trail as one list, oldest first. `sinceMs` is an epoch time. */
export function toTimeline(
  log: readonly LogRow[],
  trail: readonly TrailRow[],
  filter: { readonly sinceMs?: number | undefined; readonly task?: string | undefined },
): TimelineRow[] {
  const rows = [...log.map(fromLog), ...trail.map(fromTrail)].filter((row) => row !== null)
  const since = filter.sinceMs === undefined ? '' : new Date(filter.sinceMs).toISOString()
  return rows
    .filter((row) => row.at >= since && (filter.task === undefined || row.task === filter.task))
    .sort((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0))
}
