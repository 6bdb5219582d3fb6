import { isRunId } from '../../core/ids.ts'
import type { RunRow } from '../../protocol/rows.ts'
import { AppError } from '../../core/errors.ts'
import type { CliContext, CommandSpec, Input, Output, Result } from '../context.ts'
import { afterOf, allPages, waitFor } from '../follow.ts'
import { duration, patience, toUsage } from '../parse.ts'
import { ago, table } from '../render.ts'
import { doneResult, listResult, rowResult } from '../results.ts'

const HEADER = ['RUN', 'INSTANCE', 'STATE', 'MODEL', 'HARNESS', 'TASK', 'BY', 'AGE', 'END']

function stateOf(row: RunRow): string {
  if (!row.live) return row.state
  if (row.paused) return `${row.state} (paused)`
  return row.waitingUntil === null ? row.state : `${row.state} (waits until ${row.waitingUntil})`
}

const endOf = (row: RunRow): string | null => (row.reason === null ? null : [row.reason, row.exitCode, row.signal].filter((part) => part !== null).join(' '))

const toTable = (out: Output, rows: readonly RunRow[]): string =>
  table(
    out,
    HEADER,
    rows.map((row) => [row.run, row.instance, stateOf(row), row.model, row.harness, row.task, row.launchedBy, ago(row.startedAt), endOf(row)]),
  )

async function ps(context: CliContext, input: Input): Promise<Result> {
  const control = await context.control()
  const rows = await allPages<RunRow, string>(
    (after) => control.call('ps', { ...(input.flag('all') ? { all: true } : {}), ...afterOf(after) }),
    (row) => row.run,
  )
  return listResult(
    rows,
    (row) => row.run,
    () => toTable(context.out, rows),
  )
}

async function show(context: CliContext, input: Input): Promise<Result> {
  const row = await (await context.control()).call('show', { run: input.arg(0) })
  return rowResult(context, row, row.run)
}

/** `r2` may be an instance and the beginning of a run's id; an instance of that name wins. */
async function toTarget(context: CliContext, text: string): Promise<{ run: string } | { instance: string }> {
  if (isRunId(text)) return { run: text }
  if (!/^r[0-9a-f]{1,11}$/.test(text)) return { instance: text }
  const agents = await (await context.control()).call('agents', {})
  return agents.some(({ instance }) => instance === text) ? { instance: text } : { run: text }
}

async function stop(context: CliContext, input: Input): Promise<Result> {
  const timeoutMs = input.number('timeout')
  const [name] = input.args
  if ((name === undefined) !== input.flag('all')) throw toUsage('stop takes a run, an instance or --all', 'mosaic stop coder')
  const target = name === undefined ? { all: true as const } : await toTarget(context, name)
  const dryRun = input.flag('dryRun')
  const params = { ...target, ...(timeoutMs === undefined ? {} : { timeoutMs }), ...(dryRun ? { dryRun } : {}) }
  const rows = await (await context.control()).call('stop', params)
  return listResult(
    rows,
    (row) => row.run,
    () => rows.map((row) => `${dryRun ? 'would stop' : 'stopped'} ${row.run} (${row.instance})\n`).join(''),
  )
}

async function kill(context: CliContext, input: Input): Promise<Result> {
  const dryRun = input.flag('dryRun')
  const row = await (await context.control()).call('kill', { run: input.arg(0), ...(dryRun ? { dryRun } : {}) })
  return doneResult(row, `${dryRun ? 'would kill' : 'killed'} ${row.run} (${row.instance})`, row.run)
}

const setPaused =
  (method: 'pause' | 'resume', word: string) =>
  async (context: CliContext, input: Input): Promise<Result> => {
    const instance = input.arg(0)
    const data = await (await context.control()).call(method, { instance })
    return doneResult(data, `${word} ${instance}`, instance)
  }

/** The row of a run once it has ended; undefined when the time was over first. */
export async function waitEnd(context: CliContext, run: string, timeoutMs: number | undefined): Promise<RunRow | undefined> {
  const control = await context.control()
  return waitFor(timeoutMs, async (waitMs) => {
    const row = await control.call('wait', { run, waitMs })
    return row.state === 'ended' ? row : undefined
  })
}

async function wait(context: CliContext, input: Input): Promise<Result> {
  const run = input.arg(0)
  const row = await waitEnd(context, run, input.number('timeout'))
  if (row === undefined) throw new AppError('timeout', `${run} has not ended yet`, { hint: `mosaic wait ${run}`, data: { run } })
  return doneResult(row, `${row.run} (${row.instance}) ended: ${endOf(row) ?? 'unknown'}`, row.run)
}

export const commands: readonly CommandSpec[] = [
  { name: 'ps', summary: 'list the sessions', options: [{ flags: '-a, --all', summary: 'ended runs too, newest first' }], run: ps },
  { name: 'show <run>', summary: 'show one run', run: show },
  {
    name: 'stop [run-or-instance]',
    summary: 'stop a session, and wait until all of it is gone',
    options: [
      { flags: '--all', summary: 'every session' },
      { flags: '--timeout <D>', summary: 'how long it may take before it is killed (default: 10s)', parse: patience },
      { flags: '--dry-run', summary: 'only say what would be stopped' },
    ],
    examples: ['mosaic stop coder', 'mosaic stop --all --timeout 1m'],
    run: stop,
  },
  { name: 'kill <run>', summary: 'end a run at once', options: [{ flags: '--dry-run', summary: 'only say what would be killed' }], run: kill },
  { name: 'pause <instance>', summary: 'give an instance no new turn, until it is resumed or the bus host starts anew', run: setPaused('pause', 'paused') },
  { name: 'resume <instance>', summary: 'let a paused instance go on', run: setPaused('resume', 'resumed') },
  { name: 'wait <run>', summary: 'wait until a run has ended', options: [{ flags: '--timeout <D>', summary: 'how long to wait', parse: duration }], run: wait },
]
