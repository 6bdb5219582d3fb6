import { AppError } from '../../core/errors.ts'
import type { LaunchOrder } from '../../launch/admit.ts'
import { waitFor } from '../../bus/wait-for.ts'
import { isRunId } from '../../core/ids.ts'
import type { ControlParams } from '../../protocol/control.ts'
import type { FounderLaunchRow, RunRow } from '../../protocol/rows.ts'
import type { SessionRecord } from '../../store/session-types.ts'
import type { Host } from '../host.ts'
import { dryRunLaunch } from './dry-run.ts'
import { findRun, toRunRow } from './find-run.ts'

const STOP_MS = 10_000

/** A refused launch as the founder reads it: `INSTANCE launch refused: CODE (why)`. `who` is `PM` for --pm. */
function toLaunchError(error: unknown, who: string): unknown {
  if (!(error instanceof AppError)) return error
  return new AppError(error.code, `${who} launch refused: ${error.code} (${error.message})`, {
    ...(error.hint === undefined ? {} : { hint: error.hint }),
    ...(error.data === undefined ? {} : { data: error.data }),
    cause: error,
  })
}

/** A beginning of an id is completed, and must be one; a whole id that is unknown costs continuity alone, as a run does that was forgotten. */
const toEarlierRun = (host: Host, run: string): string => (isRunId(run) ? run : findRun(host, run).run)

type LaunchParams = ControlParams<'launch'>

function toOrder(host: Host, params: LaunchParams): LaunchOrder {
  const { instance, task = null, request = null, mode = 'keep', run, discard = false } = params
  if (run !== undefined && mode !== 'continue') throw new AppError('invalid-request', 'run goes with mode continue')
  if (discard && mode !== 'fresh') throw new AppError('invalid-request', 'discard goes with mode fresh')
  const from = run === undefined ? null : toEarlierRun(host, run)
  return { instance, task, request, mode, run: from, discard, asker: { kind: 'founder', name: host.deps.config.current().system.founder } }
}

/** A launch by the founder. Throws the gate's code with the fixed line. */
export async function founderLaunch(host: Host, params: LaunchParams, who = params.instance): Promise<FounderLaunchRow> {
  const order = toOrder(host, params)
  try {
    return await (params.dryRun === true ? dryRunLaunch(host, order) : host.launch(order))
  } catch (error) {
    throw toLaunchError(error, who)
  }
}

interface Target {
  readonly run?: string | undefined
  readonly instance?: string | undefined
}

/** The session that is meant, by its instance or by the beginning of its run's id; a launch in progress is one to be. Throws `not-running`. */
function findRunning(host: Host, { run, instance }: Target): SessionRecord {
  const record = instance === undefined ? findRun(host, run ?? '') : host.store.sessions.liveOf(instance)
  if (record !== null && (record.state === 'starting' || host.live.has(record.run))) return record
  const who = instance === undefined ? `run ${record?.run ?? ''}` : JSON.stringify(instance)
  throw new AppError('not-running', `${who} does not run`, { hint: 'mosaic ps' })
}

function allRunning({ live, store }: Host): readonly SessionRecord[] {
  const starting = store.sessions.live().filter((record) => record.state === 'starting' && !live.has(record.run))
  return [...starting, ...live.runs().flatMap((run) => store.sessions.get(run) ?? [])]
}

/** Ends a session as `end` does, or undoes its launch; its row afterwards, of which a launch that was undone has none. */
async function endRun(host: Host, record: SessionRecord, end: (run: string) => Promise<void>): Promise<RunRow> {
  if (record.state === 'starting' && (await host.cancelLaunch(record.run))) return toRunRow(host, record)
  // a launch that could not be cancelled any more is a session by now
  if (host.live.has(record.run)) await end(record.run)
  return toRunRow(host, findRun(host, record.run))
}

export const stopRun = (host: Host, record: SessionRecord, timeoutMs: number): Promise<RunRow> => endRun(host, record, (run) => host.live.stop(run, timeoutMs))

/** Ends runs and waits until everything of them is gone; with `dryRun` it only says which. Throws `not-running`. */
export async function stopRuns(host: Host, { run, instance, all, timeoutMs = STOP_MS, dryRun = false }: ControlParams<'stop'>): Promise<readonly RunRow[]> {
  if ([run, instance, all].filter((target) => target !== undefined).length !== 1) throw new AppError('invalid-request', 'stop takes one of run, instance, all')
  const records = all === true ? allRunning(host) : [findRunning(host, { run, instance })]
  if (dryRun) return records.map((record) => toRunRow(host, record))
  if (all === true) host.cancelLaunches()
  return Promise.all(records.map((record) => stopRun(host, record, timeoutMs)))
}

export async function killRun(host: Host, { run, dryRun = false }: ControlParams<'kill'>): Promise<RunRow> {
  const record = findRunning(host, { run })
  return dryRun ? toRunRow(host, record) : endRun(host, record, (id) => host.live.kill(id))
}

/** The row of a run once it has ended and its env root is free, or as it is after waitMs. */
export async function waitForEnd(host: Host, { run, waitMs = 0 }: ControlParams<'wait'>, signal: AbortSignal): Promise<RunRow> {
  const { run: id } = findRun(host, run)
  // a launch that is undone leaves no row
  const isOver = (): true | null => (host.store.sessions.get(id)?.state ?? 'ended') === 'ended' || null
  if ((await waitFor(host.store, isOver, { waitMs, signal })) === true) await host.live.ended(id)
  return toRunRow(host, findRun(host, id))
}

/** No new turns for that instance, or turns again. */
export function setPaused(host: Host, { instance }: ControlParams<'pause'>, paused: boolean): { readonly instance: string; readonly paused: boolean } {
  host.deps.config.roleOf(instance)
  const session = host.store.sessions.liveOf(instance)
  if (paused) host.turns.pause(instance)
  else host.turns.resume(instance)
  if (session !== null) host.live.say(session.run, { pause: paused })
  return { instance, paused }
}
