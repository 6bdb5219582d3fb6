import type { ControlInput } from '../../protocol/control.ts'
import type { FounderLaunchRow } from '../../protocol/rows.ts'
import type { CliContext, CommandSpec, Input, Result } from '../context.ts'
import { readText } from '../input.ts'
import { assertText, toUsage } from '../parse.ts'
import { doneResult } from '../results.ts'
import { waitEnd } from './sessions.ts'

async function readRequest(context: CliContext, input: Input): Promise<string | undefined> {
  const text = input.text('request')
  if (text === undefined) return undefined
  const request = await readText(context, text)
  assertText(request, 'the REQUEST')
  return request
}

async function toParams(context: CliContext, input: Input): Promise<ControlInput<'launch'>> {
  const task = input.text('task')
  const request = await readRequest(context, input)
  const run = input.text('continue')
  if (input.flag('discard') && !input.flag('fresh')) throw toUsage('--discard goes with --fresh', 'mosaic launch --help')
  return {
    instance: input.arg(0),
    ...(task === undefined ? {} : { task }),
    ...(request === undefined ? {} : { request }),
    ...(input.flag('fresh') ? { mode: 'fresh' as const } : {}),
    ...(run === undefined ? {} : { mode: 'continue' as const, run }),
    ...(input.flag('discard') ? { discard: true } : {}),
    ...(input.flag('dryRun') ? { dryRun: true } : {}),
  }
}

const toLine = (row: FounderLaunchRow, run: string): string => `${run}  ${row.instance}  ${row.harness}  ${row.model}  env ${row.env}`

async function launch(context: CliContext, input: Input): Promise<Result> {
  const params = await toParams(context, input)
  const row = await (await context.control()).call('launch', params)
  const { run } = row
  if (run === null) return doneResult(row, `${row.instance} would be launched with ${row.harness} and ${row.model}: env ${row.env}`)
  if (params.mode === 'continue' && row.env !== 'continued')
    context.out.note(`note: ${String(params.run)} could not be continued; mosaic transcript ${run} says why`)
  if (!input.flag('wait')) return doneResult(row, toLine(row, run), run)
  context.begun({ hint: `mosaic wait ${run}`, data: { run } })
  context.out.note(toLine(row, run))
  const ended = await waitEnd(context, run, undefined)
  const { reason = null, exitCode = null, signal = null, endedAt = null } = ended ?? {}
  const result = doneResult({ ...row, reason, exitCode, signal, endedAt }, `${run} (${row.instance}) ended: ${String(reason)}`, run)
  return { ...result, exit: reason === 'stopped' ? 0 : 1 }
}

export const commands: readonly CommandSpec[] = [
  {
    name: 'launch <instance>',
    summary: 'start a session of an instance',
    options: [
      { flags: '--task <T>', summary: 'work on this task, in an env root of its own' },
      { flags: '--request <text>', summary: 'the first REQUEST; - reads standard input' },
      { flags: '--fresh', summary: 'empty the env root first', conflicts: ['continue'] },
      { flags: '--discard', summary: 'with --fresh: unsaved work too' },
      { flags: '--continue <run>', summary: "go on with that run's env root and conversation" },
      { flags: '--dry-run', summary: 'only say what would be launched, or why it would be refused' },
      { flags: '--wait', summary: 'wait until the run has ended; exit 1 unless it was stopped' },
    ],
    examples: [
      'mosaic launch coder --task t-12',
      'mosaic launch reviewer --request "look at the open reviews"',
      'mosaic launch coder --continue r0a1b2c3d4e5f',
    ],
    run: launch,
  },
]
