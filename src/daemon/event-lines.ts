import { escapeLine } from '../core/escape.ts'
import type { LogRow, TrailRow } from '../protocol/rows.ts'

/** Characters of `2026-11-30T20:00:00`. */
const SECOND = 19

const field = (row: Readonly<Record<string, unknown>>, name: string): string => {
  const value = row[name]
  return typeof value === 'string' || typeof value === 'number' ? escapeLine(String(value)) : ''
}

/** One line of the launch log for a person who watches; null: not shown. */
export function toLogLine(row: LogRow): string | null {
  const who = escapeLine(row.instance)
  switch (row.event) {
    case 'launch':
      return `${who}  launched by ${field(row, 'launchedBy')}: run ${row.run ?? ''} (${field(row, 'harness')}, ${field(row, 'model')}, env ${field(row, 'env')})`
    case 'refused':
      return `${who}  launch refused: ${field(row, 'code')} (${field(row, 'why')})`
    case 'end':
      return `${who}  ended: ${field(row, 'reason')}, run ${row.run ?? ''}`
    case 'checkout-kept':
      return `${who}  clone of ${field(row, 'project')} kept as it is: ${field(row, 'reason')}`
  }
}

const SHOWN: Readonly<Record<string, (body: TrailRow['body'], subject: string) => string>> = {
  'message.sent': (body, id) => `${field(body, 'class')} ${id} to ${field(body, 'to')}`,
  'message.answered': (_body, id) => `answered ${id}`,
  'task.created': (_body, task) => `created task ${task}`,
  'task.assigned': (body, task) => `assigned task ${task} to ${field(body, 'assignee')}`,
  'task.closed': (_body, task) => `closed task ${task}`,
  'review.requested': (_body, task) => `asked for a review of task ${task}`,
  'review.verdict': (body, task) => `judged task ${task}: ${field(body, 'verdict')}`,
  'config.reloaded': () => 'configuration reloaded',
  override: (_body, task) => `override on task ${task}`,
}

/** One record of the trail for a person who watches; null: the launch log tells it, or it is none of the founder's daily business. */
export function toTrailLine(row: TrailRow): string | null {
  const show = Object.hasOwn(SHOWN, row.kind) ? SHOWN[row.kind] : undefined
  return show === undefined ? null : `${escapeLine(row.actor.name)}  ${show(row.body, escapeLine(row.subject ?? ''))}`
}

/** `12:34:56  text`, in the time of the machine. Events come in bursts of one second, and each formatting costs as much as the line. */
export function createConsoleLine(): (at: string, text: string) => string {
  let second = ''
  let timeOfDay = ''
  const two = (value: number): string => String(value).padStart(2, '0')
  return (at, text) => {
    if (at.slice(0, SECOND) !== second) {
      const time = new Date(at)
      second = at.slice(0, SECOND)
      timeOfDay = `${two(time.getHours())}:${two(time.getMinutes())}:${two(time.getSeconds())}`
    }
    return `${timeOfDay}  ${text}`
  }
}
