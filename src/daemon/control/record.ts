import { join } from 'node:path'
import { AppError } from '../../core/errors.ts'
import { CODES, isErrorCode } from '../../core/codes.ts'
import type { ControlParams } from '../../protocol/control.ts'
import type { LogRow, TimelineRow, TrailRow, TrailVerifyRow, UsageRow } from '../../protocol/rows.ts'
import { firstPage } from '../../bus/pages.ts'
import { waitFor } from '../../bus/wait-for.ts'
import type { Host } from '../host.ts'
import { readTimelinePage, type TimelineSource } from '../timeline.ts'
import { findRun } from './find-run.ts'

/** So many records are looked at before others are served. */
const SLICE = 500

const orNull = <T>(rows: readonly T[]): readonly T[] | null => (rows.length === 0 ? null : rows)

/** A page of the launch log; with waitMs, as soon as it has a row. */
export async function readLog({ store }: Host, { waitMs, ...filter }: ControlParams<'log'>, signal: AbortSignal): Promise<readonly LogRow[]> {
  return (await waitFor(store, () => orNull(firstPage(store.launchLog.list(filter))), { waitMs, signal })) ?? []
}

/** Which rule decided an entry of the launch log, with its numbers. */
export function explainLog({ store }: Host, { seq }: ControlParams<'log.explain'>): Readonly<Record<string, unknown>> {
  const row = store.launchLog.get(seq)
  if (row === null) throw new AppError('record-not-found', `the launch log has no entry ${String(seq)}`, { hint: 'mosaic log' })
  const code = typeof row.code === 'string' && isErrorCode(row.code) ? row.code : null
  return code === null ? row : { ...row, meaning: CODES[code].text, retry: CODES[code].retry }
}

/** A page of the timeline. */
export async function readTimeline({ store }: Host, filter: ControlParams<'timeline'>, signal: AbortSignal): Promise<readonly TimelineRow[]> {
  const source: TimelineSource = {
    log(after) {
      const rows = [...store.launchLog.list({ after, limit: SLICE })]
      return { rows, reached: rows.length < SLICE ? null : (rows.at(-1)?.seq ?? null) }
    },
    trail(after) {
      const through = after + SLICE
      return { rows: [...store.trail.list({ after, through, reserved: true })], reached: through >= store.trail.head().records ? null : through }
    },
  }
  return firstPage(await readTimelinePage(source, filter, signal))
}

export async function readTrail({ store }: Host, { waitMs, ...filter }: ControlParams<'trail'>, signal: AbortSignal): Promise<readonly TrailRow[]> {
  return (await waitFor(store, () => orNull(firstPage(store.trail.list(filter))), { waitMs, signal })) ?? []
}

/** Is there a record with this hash? */
async function holds({ trail }: Host['store'], hash: string, signal: AbortSignal): Promise<boolean> {
  for (let after = 0; after < trail.head().records; after += SLICE) {
    if (trail.holds(hash, after, after + SLICE)) return true
    await new Promise(setImmediate)
    signal.throwIfAborted()
  }
  return false
}

/** Recomputes the whole chain; with `head`, that it ends there or, if it has grown since, holds that hash. */
export async function verifyTrail({ store }: Host, { head }: ControlParams<'trail.verify'>, signal: AbortSignal): Promise<TrailVerifyRow> {
  const check = await store.trail.verify({ signal })
  const found = head === undefined || head === check.head || (check.ok && (await holds(store, head, signal)))
  return { ...check, ok: check.ok && found }
}

/** A page of the sums, in the order of their names. */
export async function readUsage({ store }: Host, { by = 'role', sinceMs, after }: ControlParams<'usage'>): Promise<readonly UsageRow[]> {
  const rows = await store.usage.sum(by, sinceMs)
  return firstPage(after === undefined ? rows : rows.filter(({ name }) => (name ?? '') > (after ?? '')))
}

/** Where a file of a run is; the client reads it itself, being the same user. */
export const runFile = (host: Host, run: string, name: string): { readonly path: string } => ({ path: join(findRun(host, run).runDir, name) })
