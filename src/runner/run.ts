import { setTimeout as delay } from 'node:timers/promises'
import { CLIENT_PROTOCOL, connectCalls } from '../client/connect.ts'
import { AppError, messageOf } from '../core/errors.ts'
import { createScope, type Scope } from '../core/scope.ts'
import type { Secret } from '../core/secret.ts'
import type { SessionFile } from '../protocol/session.ts'
import { type Broker, createBroker } from './broker.ts'
import { toCredentialEnv } from './credentials.ts'
import { foreignDescriptors, openDescriptors } from './descriptors.ts'
import type { Journal } from './journal.ts'
import { createRedact } from './redact.ts'
import { RUNNER_EXIT } from '../protocol/end-reasons.ts'
import { FAILED_EXIT_CODE, RunEnd } from './run-end.ts'
import { parseSecrets, readSessionFile } from './session-file.ts'
import { readGiven } from './stdin.ts'

const TOOL_SOCKET = '/run/agent/tools.sock'
const CLOSING_MS = 6000

export interface RunnerDeps {
  readonly sessionPath: string
  readonly input: AsyncIterable<Buffer>
  readonly env: Readonly<Record<string, string | undefined>>
  readonly journal: Journal
  readonly now: () => number
  /** Rejects when the host asks the runner to stop. */
  readonly terminated: Promise<never>
}

function assertDescriptors(): void {
  const foreign = foreignDescriptors(openDescriptors())
  if (foreign.length > 0) throw new Error(`descriptors that the runner did not open: ${foreign.map(({ fd, target }) => `${String(fd)} ${target}`).join(', ')}`)
}

const openBus = (session: SessionFile, capability: Secret): Broker =>
  createBroker({
    connect: () => connectCalls(session.brokerSocket, { cap: capability.reveal(), protocol: CLIENT_PROTOCOL }),
    tries: session.brokerTries,
    retryMs: session.brokerRetryMs,
  })

async function claim(broker: Broker, { instance, run }: SessionFile, journal: Journal): Promise<void> {
  try {
    await broker.call('role.claim', {})
  } catch (error) {
    throw error instanceof AppError && error.code === 'role-held' ? new RunEnd('role-held', `${instance} is held by another run`) : error
  }
  journal.write(`${instance} claimed by run ${run}`)
}

const definedOf = (env: RunnerDeps['env']): Record<string, string> =>
  Object.fromEntries(Object.entries(env).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])))

/** A run from its capability to its end, which is always thrown. Nothing of the harness is loaded before the role is claimed. */
async function live({ sessionPath, input, env, journal, now }: RunnerDeps, scope: Scope, signal: AbortSignal): Promise<never> {
  const given = await readGiven(input)
  if (given === null) throw new RunEnd('broker-unreachable', '')
  const { capability } = given
  journal.redactWith(createRedact([capability.reveal()]))
  const session = readSessionFile(sessionPath)
  const broker = openBus(session, capability)
  scope.defer(() => broker.close())
  await broker.reached()

  const credentials = toCredentialEnv(parseSecrets(given.credentials), now())
  const redact = createRedact([capability.reveal(), ...Object.values(credentials)])
  journal.redactWith(redact)
  await claim(broker, session, journal)

  const toolSocket = env.MOSAIC_TOOL_SOCKET ?? TOOL_SOCKET
  const childEnv = { ...definedOf(env), ...credentials, MOSAIC_TOOL_SOCKET: toolSocket }
  const withCapability = (request: object): object => ({ ...request, cap: capability.reveal() })
  const { work } = await import('./work.ts')
  return await work({ session, broker, env: childEnv, toolSocket, redact, log: (line) => journal.write(line), now, withCapability, signal }, scope)
}

function toExitCode(error: unknown, journal: Journal): number {
  const code = error instanceof RunEnd ? RUNNER_EXIT[error.reason] : FAILED_EXIT_CODE
  const why = messageOf(error)
  if (why !== '') journal.write(`${why}, exiting ${String(code)}`)
  return code
}

/** Runs one session to its end and closes what it opened, within a bound; the exit code says why it ended. */
export async function runSession(deps: RunnerDeps): Promise<number> {
  const stopping = new AbortController()
  const scope = createScope()
  let code = FAILED_EXIT_CODE
  try {
    assertDescriptors()
    await Promise.race([deps.terminated, live(deps, scope, stopping.signal)])
  } catch (error) {
    code = toExitCode(error, deps.journal)
  }
  // before the harness is interrupted, so that no turn begins after it
  stopping.abort()
  const closing = scope.close().catch((error: unknown) => deps.journal.write(`closing failed: ${messageOf(error)}`))
  await Promise.race([closing, delay(CLOSING_MS)])
  return code
}
