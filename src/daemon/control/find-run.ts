import { AppError } from '../../core/errors.ts'
import type { SessionRecord } from '../../store/session-types.ts'
import type { RunRow } from '../../protocol/rows.ts'
import type { Host } from '../host.ts'
import { toTimestamp } from '../../core/clock.ts'

/** Who names an instance is told its run: the live one, else its last. */
function runNotFound({ store, deps }: Host, text: string): AppError {
  const nothing = `no run begins with ${JSON.stringify(text)}`
  if (!deps.config.business().instances.has(text)) return new AppError('run-not-found', nothing, { hint: 'mosaic ps -a' })
  const live = store.sessions.liveOf(text)
  const run = (live ?? store.sessions.lastOf(text))?.run
  const what = run === undefined ? 'it has no run yet' : `its ${live === null ? 'last run was' : 'run is'} ${run}`
  return new AppError('run-not-found', `${nothing}; ${text} is an instance, and ${what}`, {
    hint: run === undefined ? `mosaic launch ${text}` : `name the run: ${run}`,
    ...(run === undefined ? {} : { data: { run } }),
  })
}

/** The run of that id or of a unique beginning of it. Throws `run-not-found`, `run-ambiguous`. */
export function findRun(host: Host, prefix: string): SessionRecord {
  const { store, deps } = host
  const exact = store.sessions.get(prefix)
  const found = exact === null && prefix !== '' ? store.sessions.findByPrefix(prefix) : [exact].filter((row) => row !== null)
  const own = found.filter((row) => row.business === deps.config.business().id)
  const [first, second] = own
  if (first === undefined) throw runNotFound(host, prefix)
  if (second !== undefined) {
    throw new AppError('run-ambiguous', `${JSON.stringify(prefix)} begins ${own.map(({ run }) => run).join(', ')}`, { hint: 'write more of the run id' })
  }
  return first
}

/** A session has turns for an hour, and a provider that takes requests for its family: the later of both. */
function waitingUntil({ turns, gateway }: Host, { run, family, live }: SessionRecord): string | null {
  const ends = live ? [turns.waitingUntil(run), gateway.serves(run) ? gateway.retryAtMs(family) : null].filter((end) => end !== null) : []
  return ends.length === 0 ? null : toTimestamp(Math.max(...ends))
}

/** A run as the CLI shows it. */
export function toRunRow(host: Host, record: SessionRecord): RunRow {
  const { run, instance, role, business, task, harness, model, family, state, live, launchedBy, pid, runnerPid } = record
  const { startedAt, endedAt, reason, exitCode, signal, runDir, envRoot } = record
  const now = { paused: live && host.turns.isPaused(instance), waitingUntil: waitingUntil(host, record) }
  return {
    run,
    instance,
    role,
    business,
    task,
    harness,
    model,
    family,
    state,
    live,
    launchedBy,
    pid,
    runnerPid,
    startedAt,
    endedAt,
    reason,
    exitCode,
    signal,
    runDir,
    envRoot,
    ...now,
  }
}

export function* toRunRows(host: Host, records: Iterable<SessionRecord>): Generator<RunRow> {
  for (const record of records) yield toRunRow(host, record)
}
