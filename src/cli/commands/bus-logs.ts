import { existsSync } from 'node:fs'
import { hostLogOf } from '../../client/control.ts'
import { AppError, errnoOf } from '../../core/errors.ts'
import { escapeLine } from '../../core/escape.ts'
import type { RunningUnit } from '../../service/running.ts'
import type { CliContext, CommandSpec, Input, Result } from '../context.ts'
import { findDataRoot } from '../data-root.ts'
import { integer } from '../parse.ts'
import { shortTime, toCell } from '../render.ts'
import { followLines, readLines } from '../tail.ts'

const LEVELS: Readonly<Record<number, string>> = { 10: 'trace', 20: 'debug', 30: 'info', 40: 'warn', 50: 'error', 60: 'fatal' }

function parseLine(line: string): Readonly<Record<string, unknown>> | null {
  try {
    const value: unknown = JSON.parse(line)
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : null
  } catch {
    return null
  }
}

/** `TIME level message field=value …` of a line of pino. */
function toLogLine(line: string): string {
  const row = parseLine(line)
  if (row === null) return escapeLine(line)
  const { time, level, msg, pid: _, ...more } = row
  const details = Object.entries(more).map(([name, value]) => `${escapeLine(name)}=${toCell(value)}`)
  return [typeof time === 'string' ? shortTime(time) : '-', LEVELS[Number(level)] ?? toCell(level), toCell(msg), ...details].join(' ')
}

/** The unit that runs the host of this data root, or, while none runs, the one that is installed for it. */
async function unitFor({ env, home }: CliContext, dataRoot: string): Promise<RunningUnit | null> {
  const [{ unitOfHost }, { findHolder }, { allInstalledUnits }] = await Promise.all([
    import('../host-unit.ts'),
    import('../stop-host.ts'),
    import('../../service/installed.ts'),
  ])
  const pid = await findHolder(dataRoot).then(
    (host) => host.pid,
    () => null,
  )
  if (pid !== null) return unitOfHost(pid, env)
  return allInstalledUnits({ home, env }).find((unit) => unit.dataRoot === dataRoot) ?? null
}

/** Under a unit the log goes to the journal, and host.log is that of another day, or of none. */
async function sayWhereElse(context: CliContext, dataRoot: string): Promise<void> {
  const unit = await unitFor(context, dataRoot)
  if (unit === null) return
  const { unitCommands } = await import('../../service/running.ts')
  const command = unitCommands(unit).logs
  if (!existsSync(hostLogOf(dataRoot)))
    throw new AppError('host-not-running', `the log of this bus host is in the journal, since ${unit.name} runs it`, { hint: command })
  context.out.note(`note: what ${unit.name} logs is in the journal: ${command}`)
}

async function logs(context: CliContext, input: Input): Promise<Result> {
  const dataRoot = await findDataRoot({ dataRoot: context.options.dataRoot, env: context.env, home: context.home })
  const path = hostLogOf(dataRoot)
  const count = input.number('lines')
  await sayWhereElse(context, dataRoot)
  const lines = await readLines(path, count).catch((error: unknown) => {
    if (errnoOf(error) !== 'ENOENT') throw error
    throw new AppError('host-not-running', `no bus host has written ${path}`, { hint: 'mosaic bus start', cause: error })
  })
  if (input.flag('follow')) {
    for await (const line of followLines(path, count, context)) context.out.emit({ data: parseLine(line) ?? { msg: line }, human: () => toLogLine(line) })
  }
  return { data: lines.map((line) => parseLine(line) ?? { msg: line }), human: () => lines.map((line) => `${toLogLine(line)}\n`).join(''), ids: [path] }
}

export const BUS_LOGS: CommandSpec = {
  name: 'bus logs',
  summary: "the bus host's log; needs no running host",
  options: [
    { flags: '-f, --follow', summary: 'go on with what comes' },
    { flags: '-n, --lines <N>', summary: 'the last N only', parse: integer },
  ],
  run: logs,
}
