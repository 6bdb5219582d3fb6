import { join } from 'node:path'
import { CREDENTIAL_ADVICE, INSTALL_ADVICE } from '../config/agent-advice.ts'
import { messageOf } from '../core/errors.ts'
import { silentLog } from '../core/log.ts'
import { packageRoot } from '../core/paths.ts'
import type { CheckRow } from '../doctor/check.ts'
import type { HarnessRow } from '../doctor/harness-list.ts'
import type { CliContext } from './context.ts'

/** What `init` found on this machine. It keeps no configuration from being written. */
export interface Findings {
  readonly agents: readonly HarnessRow[]
  /** null: it could not be tried. */
  readonly sandbox: Pick<CheckRow, 'state' | 'message' | 'remedy'> | null
  /** The same for people, one sentence each. */
  readonly notes: readonly string[]
}

const PROBE_TIMEOUT_MS = 60_000

async function findAgents({ env, home, version, options, signal }: CliContext): Promise<readonly HarnessRow[]> {
  const { listHarnesses } = await import('../doctor/harness-list.ts')
  const rows = await listHarnesses({ env, home, version, dataRoot: options.dataRoot, log: silentLog, signal })
  return rows.filter(({ needsCredential }) => needsCredential)
}

function toAgentNotes(agents: readonly HarnessRow[]): string[] {
  const words = ({ harness, bin, version, credential }: HarnessRow): string => {
    if (bin === null) return `${harness} is not here: ${INSTALL_ADVICE[harness] ?? 'install it'}`
    return `${harness} is ${bin}, ${version ?? 'of unknown version'}; its credential: ${credential ?? 'none is set'}`
  }
  const lacking = agents.some(({ bin, credential }) => bin !== null && credential === null)
  return [...agents.map(words), ...(lacking ? CREDENTIAL_ADVICE.map((advice) => `a credential, ${advice}`) : [])]
}

interface Envelope {
  readonly data?: { readonly checks: readonly CheckRow[] }
}

/** The whole policy, tried by a process of its own: what this one inherited would be found open in the sandbox. */
async function trySandbox({ env, options, cwd, signal }: CliContext): Promise<Findings['sandbox']> {
  const { execa } = await import('execa')
  const words = ['doctor', 'sandbox', '--json', ...(options.dataRoot === undefined ? [] : ['--data-root', options.dataRoot])]
  const ran = { cwd, env, extendEnv: false, reject: false, stdin: 'ignore', timeout: PROBE_TIMEOUT_MS, cancelSignal: signal } as const
  const { stdout } = await execa(process.execPath, [join(packageRoot(), 'bin', 'mosaic.js'), ...words], ran)
  const { data } = JSON.parse(stdout) as Envelope
  const row = data?.checks.find(({ state }) => state === 'fail') ?? data?.checks[0]
  return row === undefined ? null : { state: row.state, message: row.message, remedy: row.remedy }
}

const toSandboxNote = ({ state, message, remedy }: NonNullable<Findings['sandbox']>): string =>
  state === 'fail' ? `no session can be launched yet: ${message}${remedy === null ? '' : `; ${remedy}`}` : `the sandbox works: ${message}`

/** Looks for agent programs and tries the sandbox. A look that breaks is a note, too. */
export async function lookAround(context: CliContext): Promise<Findings> {
  const broken: string[] = []
  const attempt = async <T>(what: string, otherwise: T, look: () => Promise<T>): Promise<T> => {
    try {
      return await look()
    } catch (error) {
      broken.push(`${what}: ${messageOf(error)}`)
      return otherwise
    }
  }
  const [agents, sandbox] = await Promise.all([
    attempt('the agent programs could not be looked for', [], () => findAgents(context)),
    attempt('the sandbox could not be tried', null, () => trySandbox(context)),
  ])
  context.signal.throwIfAborted()
  return { agents, sandbox, notes: [...toAgentNotes(agents), ...(sandbox === null ? [] : [toSandboxNote(sandbox)]), ...broken] }
}
