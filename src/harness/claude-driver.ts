import { randomUUID } from 'node:crypto'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { AppError } from '../core/errors.ts'
import type { SessionFile } from '../protocol/session.ts'
import { type Agent, startAgent } from './agent.ts'
import type { Frame } from './dialect.ts'
import { createClaudeDialect, SERVER } from './claude-dialect.ts'
import type { Driver, DriverOptions } from './contract.ts'
import { readConversation, writeConversation } from './conversation-file.ts'
import { fieldsOf, listOf, textOf } from './frames.ts'
import { untilReady } from './ready.ts'
import { toClaudeTools } from './tool-names.ts'

const HARNESS = 'claude-code'
const ASK_AGAIN_MS = 20

/** Is there such a conversation in `state/`? The program exits when told to resume one that it does not have. */
function hasConversation(state: string, id: string): boolean {
  const projects = join(state, 'projects')
  return existsSync(projects) && readdirSync(projects).some((name) => existsSync(join(projects, name, `${id}.jsonl`)))
}

/** The earlier conversation where there is one to go on with, else a new one. */
function conversationArgs({ session, log }: DriverOptions): { readonly args: string[]; readonly id: string } {
  const earlier = session.resumed ? readConversation(session.state, HARNESS) : null
  if (earlier !== null && hasConversation(session.state, earlier)) return { args: ['--resume', earlier], id: earlier }
  if (session.resumed) log('there is no earlier conversation to go on with: a new one begins')
  const id = randomUUID()
  return { args: ['--session-id', id], id }
}

const toServers = ({ bundle }: SessionFile, toolSocket: string): string =>
  JSON.stringify({ mcpServers: { [SERVER]: { type: 'stdio', command: 'node', args: [`${bundle}/mcp.mjs`], env: { MOSAIC_TOOL_SOCKET: toolSocket } } } })

function toArgs({ session }: DriverOptions, conversation: readonly string[], toolSocket: string): string[] {
  return [
    ...['-p', '--input-format', 'stream-json', '--output-format', 'stream-json', '--verbose'],
    ...['--permission-mode', 'bypassPermissions', '--strict-mcp-config', '--mcp-config', toServers(session, toolSocket)],
    ...['--model', session.model, '--append-system-prompt-file', `${session.bundle}/prompt.md`],
    ...(session.tools.length === 0 ? [] : ['--tools', toClaudeTools(session.tools).join(',')]),
    ...conversation,
  ]
}

/** The state of our tool server, by the answer to `mcp_status`. */
function toolStatus(response: Frame): { readonly status: string; readonly error: string } {
  const server = listOf(fieldsOf(response.response).mcpServers).find(({ name }) => name === SERVER)
  return { status: textOf(server?.status) ?? 'missing', error: textOf(server?.error) ?? '' }
}

/** Answers of the program to our requests, by id. */
function createControl(): { readonly onControl: (response: Frame) => void; readonly ask: (agent: Agent, subtype: string) => Promise<Frame> } {
  const waiting = new Map<string, (response: Frame) => void>()
  let asked = 0
  return {
    onControl(response) {
      const id = textOf(response.request_id) ?? ''
      waiting.get(id)?.(response)
      waiting.delete(id)
    },
    ask: (agent, subtype) =>
      new Promise((resolve) => {
        const id = `${subtype}-${String(++asked)}`
        waiting.set(id, resolve)
        agent.write({ type: 'control_request', request_id: id, request: { subtype } })
      }),
  }
}

/** Resolves once the program has our tools. A failed tool server would be silent otherwise. */
async function untilTools(agent: Agent, ask: (agent: Agent, subtype: string) => Promise<Frame>): Promise<void> {
  await ask(agent, 'initialize')
  for (;;) {
    const { status, error } = toolStatus(await ask(agent, 'mcp_status'))
    if (status === 'connected') return
    if (status !== 'pending') throw new Error(`the tool server is ${status}${error === '' ? '' : ` (${error})`}`)
    await delay(ASK_AGAIN_MS)
  }
}

export async function startClaudeCode(options: DriverOptions): Promise<Driver> {
  const { session, env, toolSocket } = options
  if (toolSocket === null) throw new Error('there is no tool socket for its tools')
  const command = env.MOSAIC_HARNESS ?? ''
  if (command === '') throw new AppError('harness-missing', 'MOSAIC_HARNESS names no program')
  const { args, id } = conversationArgs(options)
  const { onControl, ask } = createControl()
  const agent = await startAgent(options, { command, args: toArgs(options, args, toolSocket), env }, createClaudeDialect({ onControl }))
  await untilReady(agent, untilTools(agent, ask))
  writeConversation(session.state, HARNESS, id)
  agent.emit({ event: 'ready' })
  return agent
}
