import { hardeningOf, type Setting } from './hardening.ts'

export type Scope = 'system' | 'user'

/** What a unit is made of; every path absolute. */
export interface UnitInput {
  readonly scope: Scope
  readonly business: string
  /** Whose bus host it is; the system's manager runs it as this user. */
  readonly founder: string
  readonly node: string
  readonly program: string
  readonly pm: boolean
  /** Real path: the one place that the bus host may write to. */
  readonly dataRoot: string
  /** Operands of `bus start` that say where the data root is, when the command line did. */
  readonly dataRootOption: string | null
  readonly credentialsFile: string
  /** PATH, and MOSAIC_CONFIG and MOSAIC_DATA where they were set. */
  readonly env: Readonly<Record<string, string>>
}

/** The first line of each unit of ours; a file without it is somebody else's. */
export const MARKER = '# Written by `mosaic service install`, which writes it anew. Put changes into a drop-in: systemctl edit UNIT'

/** systemd.unit(5): what begins with X- is for others than systemd. Tells which data root a unit serves when the configuration has changed since. */
export const DATA_ROOT_KEY = 'X-MosaicDataRoot'

const WATCHDOG_S = 30
/** A launch of the PM prepares a workspace first: limits.prepareTimeout is 5 min. */
const START_S = 600
/** Each session gets 10 s, and the store is closed last. */
const STOP_S = 90

const percent = (text: string): string => text.replaceAll('%', '%%')
const quoted = (text: string): string => `"${percent(text).replace(/[\\"]/g, String.raw`\$&`)}"`
/** systemd.service(5): `$` begins a variable in a command line and nowhere else. */
const argument = (text: string): string => (/^[\w./=:@-]+$/.test(text) ? text : quoted(text).replaceAll('$', '$$$$'))
/** A path in a list, which is split at blanks unless quoted, or the program of a command line, in which no variable is looked for. */
const path = (text: string): string => (/^[\w./=:@-]+$/.test(text) ? text : quoted(text))

function command({ node, program, business, pm, dataRootOption }: UnitInput): string {
  const words = [program, 'bus', 'start', '--business', business, ...(pm ? ['--pm'] : []), ...(dataRootOption === null ? [] : ['--data-root', dataRootOption])]
  return [path(node), ...words.map(argument)].join(' ')
}

function serviceSettings(input: UnitInput): readonly Setting[] {
  const { scope, founder, credentialsFile, env } = input
  return [
    ['Type', 'notify'],
    ['NotifyAccess', 'main'],
    ...(scope === 'system' ? ([['User', founder]] as const) : []),
    // a file name here is taken to the end of the line, quotes and all
    ['EnvironmentFile', `-${percent(credentialsFile)}`],
    ...Object.entries(env).map(([name, value]): Setting => ['Environment', quoted(`${name}=${value}`)]),
    ['ExecStart', command(input)],
    ['ExecReload', '/bin/kill -HUP $MAINPID'],
    ['Restart', 'on-failure'],
    ['RestartSec', '2'],
    // usage, refused to start, another host holds the data root, something is missing: a restart helps none of them
    ['RestartPreventExitStatus', '2 3 11 12'],
    ['WatchdogSec', String(WATCHDOG_S)],
    ['TimeoutStartSec', String(START_S)],
    ['TimeoutStopSec', String(STOP_S)],
    // SIGTERM to the bus host alone, which ends its sessions; SIGKILL to all that is left of them
    ['KillMode', 'mixed'],
    // a session that is killed for want of memory is that session's end alone
    ['OOMPolicy', 'continue'],
    // a cgroup for each session: the limits of roles
    ['Delegate', 'yes'],
    ['TasksMax', '8192'],
  ]
}

const section = (name: string, settings: readonly Setting[]): string => `[${name}]\n${settings.map(([key, value]) => `${key}=${value}\n`).join('')}`

/** The text of a unit file. Pure. systemd.unit(5) */
export function toUnit(input: UnitInput): string {
  const { scope, business, founder, dataRoot } = input
  const isSystem = scope === 'system'
  const unit: readonly Setting[] = [
    ['Description', `Mosaic bus host of ${business} (${percent(founder)})`],
    ...(isSystem
      ? ([
          ['Wants', 'network-online.target'],
          ['After', 'network-online.target'],
        ] as const)
      : []),
    ['StartLimitIntervalSec', '600'],
    ['StartLimitBurst', '5'],
    [DATA_ROOT_KEY, dataRoot],
  ]
  const service = [...serviceSettings(input), ...hardeningOf(scope), ...(isSystem ? ([['ReadWritePaths', path(dataRoot)]] as const) : [])]
  const install: readonly Setting[] = [['WantedBy', isSystem ? 'multi-user.target' : 'default.target']]
  return [MARKER, section('Unit', unit), section('Service', service), section('Install', install)].join('\n')
}

/** What a new credentials file says: names to fill in, no value. */
export const CREDENTIALS_TEMPLATE = `# Credentials of the bus host, one NAME=value a line. Only systemd reads this file; keep its mode 0600.
# Claude Code and pi take one of these:
#CLAUDE_CODE_OAUTH_TOKEN=
#ANTHROPIC_API_KEY=
# Behind a proxy with an authority of its own:
#NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt
# And whatever "credentials: { NAME: { env: VARIABLE } }" of a role names.
`
