import { dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { anySignal } from '../core/any-signal.ts'
import { AppError, messageOf } from '../core/errors.ts'
import type { Scope } from '../core/scope.ts'
import type { CallTool, Driver, DriverOptions } from '../harness/contract.ts'
import { findHarness } from '../harness/registry.ts'
import type { SessionFile } from '../protocol/session.ts'
import type { Broker } from './broker.ts'
import { type Conversation, createConversation } from './conversation.ts'
import type { GitDoor } from './git/exchange.ts'
import { type GitCallsDeps, openGitCalls } from './git/calls.ts'
import { askLaunch } from './launch-socket.ts'
import type { Redact } from './redact.ts'
import { RunEnd } from './run-end.ts'
import { openToolServer } from './tool-server.ts'
import { createTools, type ToolDeps, type TurnMarks } from './tools.ts'
import { createTranscript } from './transcript.ts'
import { takeTurns } from './turns.ts'
import { obeyHost } from './obey-host.ts'

const INTERRUPT_MS = 1000
const CLOSE_MS = 2000
const FLUSH_MS = 1000

export interface WorkDeps {
  readonly session: SessionFile
  readonly broker: Broker
  /** What a child of the runner may see: the session's variables and the role's credentials. */
  readonly env: Readonly<Record<string, string>>
  readonly toolSocket: string
  readonly redact: Redact
  readonly log: (line: string) => void
  readonly now: () => number
  /** The fields of a launch request, with the capability added to them. */
  readonly withCapability: (request: object) => object
  readonly signal: AbortSignal
}

async function startDriver(options: DriverOptions): Promise<Driver> {
  const { harness } = options.session
  const load = findHarness(harness)?.driver
  if (load === undefined) throw new RunEnd('harness-missing', `this version of Mosaic has no driver for ${harness}`)
  try {
    const start = await load()
    return await start(options)
  } catch (error) {
    const isMissing = error instanceof AppError && error.code === 'harness-missing'
    throw new RunEnd(isMissing ? 'harness-missing' : 'harness-failed', `${harness} did not start: ${messageOf(error)}`)
  }
}

/** Interrupt, close its input, end it: each with its own limit. */
async function stopHarness(driver: Driver, conversation: Conversation): Promise<void> {
  driver.interrupt()
  await Promise.race([conversation.idle(), delay(INTERRUPT_MS)])
  await Promise.race([driver.close(CLOSE_MS), delay(2 * CLOSE_MS)])
}

const toDoor = ({ session: { gitSocket }, withCapability, signal }: WorkDeps): GitDoor | null =>
  gitSocket === null ? null : { path: gitSocket, toRequest: withCapability, signal }

function toGitTools(deps: WorkDeps): ToolDeps['git'] {
  const { session, broker, signal } = deps
  const door = toDoor(deps)
  if (door === null) return null
  const projectOf = async (task: string): Promise<unknown> => ((await broker.callOnce('task.show', { task })) as { project: unknown }).project
  return async (tool, args) => (await import('./git/tools.ts')).runGitTool({ session, door, projectOf, signal }, tool, args)
}

/** Git of the session's programs, beside the tool socket. */
function serveGit(deps: WorkDeps, scope: Scope): void {
  const { session, broker, toolSocket, log } = deps
  const listTasks = async (): Promise<unknown> => {
    const tasks: { readonly id: string }[] = []
    for (;;) {
      const last = tasks.at(-1)
      const page = (await broker.callOnce('task.list', { state: 'open', ...(last === undefined ? {} : { after: last.id }) })) as typeof tasks
      if (page.length === 0) return tasks
      tasks.push(...page)
    }
  }
  const serve: GitCallsDeps['serve'] = async (caller, words, signal) => {
    using either = anySignal([signal, deps.signal])
    const door = toDoor({ ...deps, signal: either.signal })
    await (await import('./git/serve.ts')).serveGit({ session, door, listTasks }, caller, words, either.signal)
  }
  const calls = openGitCalls({ serve, log }, join(dirname(toolSocket), 'git'))
  scope.defer(() => calls[Symbol.dispose]())
}

/** Without it a harness that needs no tool server still works. */
async function serveTools(deps: WorkDeps, scope: Scope, callTool: CallTool): Promise<string | null> {
  const { session, toolSocket, log } = deps
  const listTools = async (): Promise<unknown> => (await import('./tool-schemas.ts')).listTools(session.grants)
  try {
    scope.use(await openToolServer({ callTool, listTools, log }, toolSocket))
    serveGit(deps, scope)
    return toolSocket
  } catch (error) {
    log(`no tool socket: ${messageOf(error)}`)
    return null
  }
}

/** Everything after the claim: tools, harness, turns. Never resolves; throws what ends the run. `scope` gets what must be closed. */
export async function work(deps: WorkDeps, scope: Scope): Promise<never> {
  const { session, broker, env, redact, log, now, withCapability, signal } = deps
  let turn: TurnMarks | undefined
  const { launchSocket } = session
  const callTool = createTools({
    callBus: (method, params) => broker.callOnce(method, params),
    launch: launchSocket === null ? null : (request) => askLaunch(launchSocket, withCapability(request), signal),
    git: toGitTools(deps),
    currentTurn: () => turn,
  })
  const transcript = createTranscript({ append: (entries) => broker.call('transcript.append', { entries }), redact, log })
  scope.defer(() => Promise.race([transcript.flush(), delay(FLUSH_MS)]))
  const toolSocket = await serveTools(deps, scope, callTool)
  const driver = await startDriver({ session, env, callTool, toolSocket, log })
  const conversation = createConversation({ driver, transcript })
  scope.defer(() => stopHarness(driver, conversation))
  const polling = { broker, log, tries: session.brokerTries, retryMs: session.brokerRetryMs, signal }
  const setTurn = (next: TurnMarks | undefined): void => {
    turn = next
  }
  const gone = conversation.ended.then(() => {
    throw new RunEnd('harness-failed', 'the harness ended by itself')
  })
  return await Promise.race([takeTurns({ ...polling, conversation, transcript, now, setTurn }), obeyHost(polling), gone])
}
