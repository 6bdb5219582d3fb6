import type { DescribeRequest, Described } from '../../service/describe.ts'
import type { ServiceRow } from '../../service/status.ts'
import type { Systemctl } from '../../service/systemctl.ts'
import type { Scope } from '../../service/unit.ts'
import { AppError } from '../../core/errors.ts'
import type { CliContext, CommandSpec, Input, OptionSpec, Result } from '../context.ts'
import { fields, toCell } from '../render.ts'
import { doneResult } from '../results.ts'

interface Located extends Pick<Described, 'account' | 'places'> {
  readonly scope: Scope
  readonly systemctl: Systemctl
}

type Asked = Located & Described

const isRoot = (): boolean => process.getuid?.() === 0

function scopeOf(input: Input): Scope {
  if (input.flag('user')) return 'user'
  return input.flag('system') || isRoot() ? 'system' : 'user'
}

function requestOf({ env, home, options }: CliContext, input: Input): DescribeRequest {
  const [business, founder, pm] = [input.text('business'), input.text('as'), input.flag('pm')]
  return { scope: scopeOf(input), business, founder, pm, env, home, dataRoot: options.dataRoot }
}

async function describe(context: CliContext, input: Input): Promise<Asked> {
  const [{ describeUnit }, { createSystemctl }] = await Promise.all([import('../../service/describe.ts'), import('../../service/systemctl.ts')])
  const request = requestOf(context, input)
  return { ...(await describeUnit(request)), scope: request.scope, systemctl: createSystemctl(request.scope, context.env) }
}

/** By the unit's name and file alone, where there is one. */
async function locate(context: CliContext, input: Input): Promise<Located> {
  const [{ locateUnit }, { createSystemctl }] = await Promise.all([import('../../service/describe.ts'), import('../../service/systemctl.ts')])
  const request = requestOf(context, input)
  return { ...(await locateUnit(request)), scope: request.scope, systemctl: createSystemctl(request.scope, context.env) }
}

async function print(context: CliContext, input: Input): Promise<Result> {
  const { places, text } = await describe(context, input)
  return { data: { unit: places.name, path: places.unit, credentials: places.credentials, text }, human: () => text, ids: [places.name] }
}

const nameOf = (scope: Scope): string => (scope === 'user' ? 'systemctl --user' : 'systemctl')

function assertMay({ scope, account }: Located, verb: string): void {
  if (scope === 'system' && !isRoot())
    throw new AppError('not-permitted', `only root can ${verb} a system unit`, { hint: `sudo mosaic service ${verb} --system --as ${account.name}` })
  if (scope === 'user' && account.uid !== process.getuid?.())
    throw new AppError('not-permitted', `only ${account.name} can ${verb} a unit of ${account.name}'s`, {
      hint: `runuser -u ${account.name} -- mosaic service ${verb} --user`,
    })
}

async function install(context: CliContext, input: Input): Promise<Result> {
  const described = await describe(context, input)
  assertMay(described, 'install')
  const { installUnit } = await import('../../service/install.ts')
  const { scope, places, text, account, systemctl } = described
  const row = installUnit(systemctl, { places, text, account, dataRoot: described.input.dataRoot })
  const start = `${nameOf(scope)} restart ${row.unit}`
  const { hasLinger } = await import('../../service/places.ts')
  if (scope === 'user' && !hasLinger(account.name))
    context.out.note(`note: without lingering it ends when ${account.name} logs out: loginctl enable-linger ${account.name}`)
  const closed = row.credentialsClosed ? ', which others could read: it has mode 0600 now' : ''
  const lines = [
    `wrote ${toCell(row.path)}`,
    row.credentialsMade ? `wrote ${toCell(row.credentials)}: fill in what the harnesses need` : `kept ${toCell(row.credentials)}${closed}`,
    `next: ${start}`,
  ]
  return { data: { ...row, scope }, human: () => lines.join('\n'), ids: [row.unit] }
}

async function uninstall(context: CliContext, input: Input): Promise<Result> {
  const located = await locate(context, input)
  assertMay(located, 'uninstall')
  const { assertUninstallable, uninstallUnit } = await import('../../service/install.ts')
  const { places, systemctl, account } = located
  if (input.flag('dryRun')) {
    assertUninstallable({ places, account })
    return doneResult({ unit: places.name, path: places.unit }, `would stop ${places.name} and remove ${toCell(places.unit)}`, places.name)
  }
  uninstallUnit(systemctl, { places, account })
  return doneResult(
    { unit: places.name, path: places.unit },
    `${places.name} is stopped and removed; ${toCell(places.credentials)} and the data root stay`,
    places.name,
  )
}

const isActive = ({ active }: ServiceRow): boolean => active === 'active' || active === 'reloading'

/** What an installation would write now; null when the configuration would let it write nothing. */
async function textsOf(context: CliContext, input: Input): Promise<readonly string[] | null> {
  const { toUnit } = await import('../../service/unit.ts')
  try {
    const described = await describe(context, input)
    return [true, false].map((pm) => toUnit({ ...described.input, pm }))
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    context.out.note(`note: ${error.message}`)
    return null
  }
}

async function status(context: CliContext, input: Input): Promise<Result> {
  const located = await locate(context, input)
  const { statusOfUnit } = await import('../../service/status.ts')
  const row = statusOfUnit(located.systemctl, { ...located, texts: await textsOf(context, input) })
  if (row.current === false) context.out.note('note: an installation now would write another unit: mosaic service print shows it')
  return { data: row, human: () => fields(context.out, row), ids: [row.unit], exit: isActive(row) ? 0 : 1 }
}

const WHERE: readonly OptionSpec[] = [
  { flags: '--user', summary: "in the user's own manager (default, but for root)", conflicts: ['system'] },
  { flags: '--system', summary: "in the machine's manager, with all of the hardening", conflicts: ['user'] },
  { flags: '--as <name>', summary: 'whose bus host it is (default: who calls, or called sudo)' },
  { flags: '--business <id>', summary: 'which business, when there are more' },
]
const PM: OptionSpec = { flags: '--pm', summary: 'launch the instance that may launch the others, too' }

const DRY_RUN: OptionSpec = { flags: '--dry-run', summary: 'only say what would be removed' }

export const commands: readonly CommandSpec[] = [
  { name: 'service print', summary: 'print the systemd unit of the bus host', options: [...WHERE, PM], run: print },
  {
    name: 'service install',
    summary: 'write the unit and a file for credentials, and enable it; starts nothing',
    options: [...WHERE, PM],
    examples: ['mosaic service install --user --pm', 'sudo mosaic service install --system --as ada --pm'],
    run: install,
  },
  { name: 'service uninstall', summary: 'stop and remove the unit; credentials and data stay', options: [...WHERE, DRY_RUN], run: uninstall },
  { name: 'service status', summary: 'is it installed, and does it run; exit 1 when it does not', options: WHERE, run: status },
]
