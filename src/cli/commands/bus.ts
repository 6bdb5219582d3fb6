import { type ControlClient, openControl } from '../../client/control.ts'
import { AppError } from '../../core/errors.ts'
import { escapeLine } from '../../core/escape.ts'
import type { StatusRow } from '../../protocol/rows.ts'
import type { RunningUnit } from '../../service/running.ts'
import type { CliContext, CommandSpec, Input, Output, Result } from '../context.ts'
import { toAppError } from '../output.ts'
import { patience, toUsage } from '../parse.ts'
import { fields, table } from '../render.ts'
import { findDataRoot } from '../data-root.ts'
import { doneResult } from '../results.ts'
import { findHolder, hasStoppedInOrder, stopBySignal, waitUntilGone } from '../stop-host.ts'
import { BUS_LOGS } from './bus-logs.ts'

interface StartOptions {
  readonly business: string | undefined
  readonly pm: boolean
  readonly detach: boolean
}

/** For programs stdout gets the row alone, once the host is ready. */
const forPrograms = ({ options }: CliContext): boolean => options.json || options.quiet

/** The daemon is loaded here and nowhere else: no other verb pays for it. */
async function startHost(context: CliContext, { business, pm, detach }: StartOptions): Promise<void> {
  const [{ startBusHost }, { announceRefusal }, { resolveConfigDir }] = await Promise.all([
    import('../../daemon/main.ts'),
    import('../../daemon/detach.ts'),
    import('../../config/paths.ts'),
  ])
  const { dataRoot } = context.options
  try {
    await startBusHost({
      configDir: resolveConfigDir(context.env, context.home),
      ...(dataRoot === undefined ? {} : { dataRoot }),
      ...(business === undefined ? {} : { business }),
      pm,
      detach,
      env: context.env,
      say(text) {
        if (!forPrograms(context)) {
          context.out.write(`${text}\n`)
          return
        }
        for (const line of text.split('\n')) context.out.note(line)
      },
      onReady: (row) => (forPrograms(context) ? context.out.emit(statusResult(context, row)) : undefined),
    })
  } catch (error) {
    await announceRefusal(toAppError(error))
    throw error
  }
}

/** Starts it without a terminal; its row once it is ready. The connection to a host that was there before is of no use. */
async function startDetached(context: CliContext, options: Omit<StartOptions, 'detach'>): Promise<Result> {
  await startHost(context, { ...options, detach: true })
  const { version, env, home, signal } = context
  await using control = await openControl({ dataRoot: await findDataRoot({ dataRoot: context.options.dataRoot, env, home }), version, signal })
  const row = await control.call('status', {})
  return doneResult(row, `the bus host of ${row.business} is ready (pid ${String(row.pid)})`, String(row.pid))
}

/** Becomes that user and runs this program anew, without --user; returns only when we are that user already. */
async function becomeUser(context: CliContext, name: string, argv: readonly string[]): Promise<void> {
  if (process.getuid?.() !== 0) {
    const { userInfo } = await import('node:os')
    if (userInfo().username === name) return
    throw new AppError('not-permitted', `only root can start a bus host as ${name}`, { hint: `sudo mosaic bus start --user ${name}` })
  }
  const { becomeUser: become } = await import('../../daemon/user.ts')
  become(name, argv, context.env)
}

async function start(context: CliContext, input: Input): Promise<Result | number> {
  const [user, business] = [input.text('user'), input.text('business')]
  const [pm, detach] = [input.flag('pm'), input.flag('detach')]
  if (user !== undefined) {
    const { dataRoot, json, quiet } = context.options
    const options = [
      business === undefined ? [] : ['--business', business],
      pm ? ['--pm'] : [],
      detach ? ['--detach'] : [],
      dataRoot === undefined ? [] : ['--data-root', dataRoot],
      json ? ['--json'] : [],
      quiet ? ['--quiet'] : [],
    ]
    await becomeUser(context, user, [process.argv[1] ?? 'mosaic', 'bus', 'start', ...options.flat()])
  }
  if (detach) return startDetached(context, { business, pm })
  await startHost(context, { business, pm, detach })
  return 0
}

function toStatusText(out: Output, row: StatusRow): string {
  const { capacity, warnings, sockets: _, ...more } = row
  const slots = Object.entries(capacity).map(([family, { max, live, retryAt }]) => [
    family,
    `${String(live)} of ${String(max)}`,
    retryAt === null ? null : `limited until ${retryAt}`,
  ])
  const lines = warnings.map((line) => `${out.style('yellow', 'warning')}: ${escapeLine(line)}\n`).join('')
  return `${fields(out, more)}${slots.length === 0 ? '' : `\n${table(out, ['FAMILY', 'LIVE', 'LIMIT'], slots)}`}${lines === '' ? '' : `\n${lines}`}`
}

const statusResult = ({ out }: CliContext, row: StatusRow): Result => ({ data: row, human: () => toStatusText(out, row), ids: [String(row.pid)] })

async function status(context: CliContext): Promise<Result> {
  return statusResult(context, await (await context.control()).call('status', {}))
}

interface Running {
  readonly pid: number
  /** null: a host of another version, which could not be asked. */
  readonly business: string | null
}

/** What is left to ask before the host is told to stop; it may throw. */
type BeforeStop = (host: Running) => Promise<void>

const rootOf = ({ options, env, home }: CliContext): Promise<string> => findDataRoot({ dataRoot: options.dataRoot, env, home })

/** Asks the host to stop and waits until its process is gone. */
async function stopByRequest(context: CliContext, control: ControlClient, input: Input, before: BeforeStop): Promise<Running> {
  const [drainMs, timeoutMs] = [input.number('drain'), input.number('timeout')]
  const { pid, business } = await control.call('status', {})
  await before({ pid, business })
  const { startTimeOf } = await import('../../core/proc.ts')
  const start = startTimeOf(pid)
  await control
    .call('shutdown', { ...(drainMs === undefined ? {} : { drainMs }), ...(timeoutMs === undefined ? {} : { timeoutMs }) })
    .catch((error: unknown) => {
      // a host that closes before it answers has done what it was asked
      if (!(error instanceof AppError) || error.code !== 'host-not-running') throw error
    })
  await control.closed
  if (start !== null) await waitUntilGone({ pid, start }, context.signal)
  return { pid, business }
}

/** Stops it, also one of another version, as after an upgrade: that one cannot be asked to drain. */
async function stopHost(context: CliContext, input: Input, before: BeforeStop = () => Promise.resolve()): Promise<Running> {
  try {
    return await stopByRequest(context, await context.control(), input, before)
  } catch (error) {
    if (!(error instanceof AppError) || error.code !== 'protocol-mismatch') throw error
    const host = await findHolder(await rootOf(context))
    await before({ pid: host.pid, business: null })
    context.out.note(`note: ${error.message}; it is stopped by a signal${input.number('drain') === undefined ? '' : ', which does not wait for running turns'}`)
    await stopBySignal(host, context.signal)
    return { pid: host.pid, business: null }
  }
}

/** What a stop would end: the host and its sessions. */
async function wouldStop(context: CliContext, then: string): Promise<Result> {
  const control = await context.control()
  const [{ pid, business }, runs] = await Promise.all([control.call('status', {}), control.call('ps', {})])
  const sessions = runs.filter(({ live }) => live).map(({ run, instance }) => ({ run, instance }))
  const lines = sessions.map(({ run, instance }) => `would end ${run} (${instance})\n`).join('')
  return { data: { pid, business, sessions }, human: () => `would ${then} the bus host of ${business} (pid ${String(pid)})\n${lines}`, ids: [String(pid)] }
}

async function stop(context: CliContext, input: Input): Promise<Result> {
  if (input.flag('dryRun')) return wouldStop(context, 'stop')
  const { pid, business } = await stopHost(context, input)
  const inOrder = hasStoppedInOrder(await rootOf(context))
  const name = `the bus host${business === null ? '' : ` of ${business}`} (pid ${String(pid)})`
  const line = inOrder ? `${name} has stopped` : `${name} was killed before it had stopped in order: its next start ends what it left as host-lost`
  return { ...doneResult({ pid, business, inOrder }, line, String(pid)), exit: inOrder ? 0 : 1 }
}

/** With a configuration that the next one would refuse, without that business or its programs, the one that runs had better go on. */
async function assertNextStarts({ env, home, options }: CliContext, business: string | undefined): Promise<void> {
  const [{ assertStartable }, { resolveConfigDir }] = await Promise.all([import('../../daemon/startable.ts'), import('../../config/paths.ts')])
  await assertStartable({ configDir: resolveConfigDir(env, home), home, env, dataRoot: options.dataRoot }, business)
}

/** A unit's host is started by its unit alone: with its environment, its credentials and its supervision. */
async function startUnit(context: CliContext, unit: RunningUnit, input: Input): Promise<Result> {
  const { createSystemctl } = await import('../../service/systemctl.ts')
  createSystemctl(unit.scope, context.env).run('start', unit.name)
  if (input.flag('pm')) context.out.note(`note: ${unit.name} says whether the PM is launched: mosaic service install --pm`)
  return doneResult({ unit: unit.name }, `${unit.name} has started it again`, unit.name)
}

async function restart(context: CliContext, input: Input): Promise<Result> {
  const asked = input.text('business')
  if (input.flag('dryRun')) {
    await assertNextStarts(context, asked)
    return wouldStop(context, 'restart')
  }
  const by: { unit: RunningUnit | null } = { unit: null }
  const { business } = await stopHost(context, input, async (host) => {
    await assertNextStarts(context, asked ?? host.business ?? undefined)
    const [{ unitOfHost }, { assertMayRestart }] = await Promise.all([import('../host-unit.ts'), import('../../service/running.ts')])
    by.unit = await unitOfHost(host.pid, context.env)
    if (by.unit === null) return
    assertMayRestart(by.unit)
    if (asked !== undefined && host.business !== null && asked !== host.business) throw toUsage(`${by.unit.name} serves ${host.business}, not ${asked}`)
  })
  if (by.unit !== null) return startUnit(context, by.unit, input)
  return startDetached(context, { business: asked ?? business ?? undefined, pm: input.flag('pm') })
}

const STILL = 'the old configuration still serves'

async function reload(context: CliContext): Promise<Result> {
  const facts = await (await context.control()).call('reload', {}).catch((error: unknown) => {
    if (!(error instanceof AppError) || !error.code.startsWith('config-')) throw error
    throw new AppError(error.code, `${error.message}; ${STILL}`, { hint: error.hint ?? 'mosaic config check', data: error.data, cause: error })
  })
  if (Array.isArray(facts.errors) && facts.errors.length > 0)
    throw new AppError('config-invalid', `the configuration is not valid; ${STILL}`, { hint: 'mosaic config check', data: facts })
  return { data: facts, human: () => `reloaded\n${fields(context.out, facts)}` }
}

const BUSINESS = { flags: '--business <id>', summary: 'which business, when there are more' }
const PM = { flags: '--pm', summary: 'launch the instance that may launch the others, too' }
const DRAIN = { flags: '--drain <D>', summary: 'let running turns end within this time', parse: patience }
const TIMEOUT = { flags: '--timeout <D>', summary: 'how long each session may take before it is killed (default: 10s)', parse: patience }

const DRY_RUN = { flags: '--dry-run', summary: 'only say what would be stopped' }

export const commands: readonly CommandSpec[] = [
  {
    name: 'bus start',
    summary: 'start the bus host, in the foreground',
    options: [BUSINESS, PM, { flags: '--detach', summary: 'return once it is ready' }, { flags: '--user <name>', summary: 'as root: run it as this user' }],
    examples: ['mosaic bus start --pm', 'sudo mosaic bus start --user ada --detach'],
    handlesSignals: true,
    run: start,
  },
  { name: 'bus stop', summary: 'stop it with all its sessions, and wait until it is gone', options: [DRAIN, TIMEOUT, DRY_RUN], run: stop },
  { name: 'bus restart', summary: 'stop it and start it again, detached', options: [BUSINESS, PM, DRAIN, TIMEOUT, DRY_RUN], run: restart },
  { name: 'bus status', summary: 'what it serves, and how much of it', run: status },
  { name: 'bus reload', summary: 'read the configuration again; an invalid one changes nothing', run: reload },
  BUS_LOGS,
]
