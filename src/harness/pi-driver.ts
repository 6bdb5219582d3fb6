import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { AppError } from '../core/errors.ts'
import { type Agent, type AgentCommand, startAgent } from './agent.ts'
import type { Dialect, Frame } from './dialect.ts'
import type { Driver, DriverOptions } from './contract.ts'
import { readConversation, writeConversation } from './conversation-file.ts'
import { textOf } from './frames.ts'
import { createLimitClock } from './limits.ts'
import { type ModelRelay, openModelRelay } from './model-relay.ts'
import { createPiDialect } from './pi-dialect.ts'
import { untilReady } from './ready.ts'

const HARNESS = 'pi'
const SESSIONS = 'sessions'

/** The file of the earlier conversation; null when there is none to go on with. */
function earlierSession({ session }: DriverOptions): string | null {
  const id = session.resumed ? readConversation(session.state, HARNESS) : null
  const dir = join(session.state, SESSIONS)
  if (id === null || !existsSync(dir)) return null
  const name = readdirSync(dir).find((each) => each.endsWith(`_${id}.jsonl`))
  return name === undefined ? null : join(dir, name)
}

function toCommand(options: DriverOptions, program: string, relay: ModelRelay): AgentCommand {
  const { session, env, log } = options
  const earlier = earlierSession(options)
  if (session.resumed && earlier === null) log('there is no earlier conversation to go on with: a new one begins')
  const args = [
    ...[program, '--mode', 'rpc', '--provider', 'anthropic', '--model', session.model],
    ...['--extension', `${session.bundle}/pi-extension.mjs`, '--append-system-prompt', `${session.bundle}/prompt.md`],
    ...['--session-dir', join(session.state, SESSIONS)],
    ...(earlier === null ? [] : ['--session', earlier]),
  ]
  return { command: 'node', args, env: { ...env, MOSAIC_MODEL_URL: relay.url, MOSAIC_TOOLS: session.tools.join(',') } }
}

/** The answer to the first question about its state: pi reads its input only once its extension, and so our tools, have loaded. */
function createFirstState(): { readonly onState: (state: Frame) => void; readonly first: Promise<Frame> } {
  let onState: (state: Frame) => void = () => undefined
  const first = new Promise<Frame>((resolve) => {
    onState = resolve
  })
  return { onState: (state) => onState(state), first }
}

async function startReady(options: DriverOptions, command: AgentCommand, resetsAtMs: () => number | undefined): Promise<Agent> {
  const { session } = options
  const { onState, first } = createFirstState()
  let write: (frame: object) => void = () => undefined
  const dialect: Dialect = createPiDialect({ write: (frame) => write(frame), limits: createLimitClock(), resetsAtMs, onState })
  const agent = await startAgent(options, command, dialect)
  write = agent.write
  agent.write({ id: 'ready', type: 'get_state' })
  const id = textOf((await untilReady(agent, first)).sessionId)
  if (id !== undefined) {
    writeConversation(session.state, HARNESS, id)
    agent.emit({ event: 'session-id', id })
  }
  agent.emit({ event: 'ready' })
  return agent
}

export async function startPi(options: DriverOptions): Promise<Driver> {
  const { session, env, toolSocket } = options
  const program = env.MOSAIC_HARNESS ?? ''
  if (program === '') throw new AppError('harness-missing', 'MOSAIC_HARNESS names no program')
  if (toolSocket === null) throw new Error('there is no tool socket for its tools')
  if (session.modelSocket === null) throw new Error('there is no model socket')
  let resetsAtMs: number | undefined
  const onLimit = (atMs: number | undefined): void => {
    resetsAtMs = atMs
  }
  const relay = await openModelRelay({ socketPath: session.modelSocket, onLimit })
  const command = toCommand({ ...options, env: { ...env, MOSAIC_TOOL_SOCKET: toolSocket } }, program, relay)
  try {
    const agent = await startReady(options, command, () => resetsAtMs)
    void agent.exited.then(() => relay[Symbol.asyncDispose]())
    return agent
  } catch (error) {
    await relay[Symbol.asyncDispose]()
    throw error
  }
}
