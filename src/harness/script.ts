import { stat } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import { messageOf, unreachable } from '../core/errors.ts'
import type { CallTool, Driver, DriverEvent, DriverOptions, Harness, ToolAnswer, TurnEnded } from './contract.ts'
import { createEventQueue } from './events.ts'
import { type Command, parseCommands, splitTurn } from './script-commands.ts'
import { runShell } from './shell.ts'

/** The embedded harness: it obeys the lines of a message and needs neither program, credential nor network. */
export const script: Harness = {
  name: 'script',
  spoken: 'built in',
  needsSessionCredential: false,
  needsModelSocket: false,
  stateEntries: [],
  locate: () => Promise.resolve({ bin: null, inside: null, version: null, programs: [], pathDirs: [] }),
  whyMissing: () => 'script ships with Mosaic',
  whyNoCredential: () => null,
  environment: () => ({}),
  configFiles: () => [],
  bundled: [],
  driver: () => Promise.resolve(startScript),
}

interface Turn {
  readonly options: DriverOptions
  readonly emit: (event: DriverEvent) => void
  readonly signal: AbortSignal
}

/** What a command adds to the answer: a text, nothing, or the end of the turn. */
type Output = string | undefined | { readonly failed: string }

function parseArguments(json: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(json)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}

async function answerOf(callTool: CallTool, name: string, json: string): Promise<ToolAnswer> {
  const args = parseArguments(json)
  if (args === undefined) return { ok: false, error: 'invalid-request', text: "a tool's arguments are one JSON object" }
  return await callTool(name, args)
}

async function callTool({ options, emit }: Turn, name: string, json: string): Promise<string> {
  emit({ event: 'tool-call', name, input: json })
  const answer = await answerOf(options.callTool, name, json)
  emit({ event: 'tool-result', name, ok: answer.ok })
  return JSON.stringify(answer.ok ? (answer.result ?? { ok: true }) : { ok: false, error: answer.error, text: answer.text })
}

async function run({ options, emit, signal }: Turn, command: string): Promise<Output> {
  emit({ event: 'tool-call', name: 'RUN', input: command })
  const { output, exitCode } = await runShell(command, { cwd: options.session.workspace, env: options.env }, signal)
  emit({ event: 'tool-result', name: 'RUN', ok: exitCode === 0 })
  const lines = [output.replace(/\n$/, ''), exitCode === 0 ? '' : `[exit ${String(exitCode)}]`].filter((line) => line !== '')
  return lines.length === 0 ? undefined : lines.join('\n')
}

async function wait(ms: number, signal: AbortSignal): Promise<Output> {
  await delay(ms, undefined, { signal }).catch(() => undefined)
  return undefined
}

async function later(turn: Turn): Promise<Output> {
  await turn.options.callTool('answer_later', {})
  return undefined
}

function obey(turn: Turn, command: Command): Output | Promise<Output> {
  switch (command.kind) {
    case 'tool':
      return callTool(turn, command.name, command.args)
    case 'run':
      return run(turn, command.command)
    case 'say':
      return command.text
    case 'wait':
      return wait(command.ms, turn.signal)
    case 'later':
      return later(turn)
    case 'fail':
      return { failed: 'FAIL' }
    default:
      return unreachable(command)
  }
}

const aborted = (signal: AbortSignal): Promise<undefined> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve(undefined)
    else signal.addEventListener('abort', () => resolve(undefined), { once: true })
  })

async function obeyAll(turn: Turn, commands: readonly Command[]): Promise<{ readonly text: string; readonly failed: string | null }> {
  const outputs: string[] = []
  for (const command of commands) {
    const output = await Promise.race([obey(turn, command), aborted(turn.signal)])
    if (turn.signal.aborted) return { text: outputs.join('\n'), failed: 'interrupted' }
    if (typeof output === 'object') return { text: outputs.join('\n'), failed: output.failed }
    if (output !== undefined) outputs.push(output)
  }
  return { text: outputs.join('\n'), failed: null }
}

async function play(turn: Turn, text: string): Promise<TurnEnded> {
  const { header, body } = splitTurn(text)
  const commands = parseCommands(body)
  const { text: answer, failed } = commands.length === 0 ? { text: `echo: ${header}\n\n${body}`, failed: null } : await obeyAll(turn, commands)
  if (answer !== '') turn.emit({ event: 'text', text: answer })
  return { event: 'turn-ended', ok: failed === null, reason: failed }
}

async function startScript(options: DriverOptions): Promise<Driver> {
  if (!(await stat(options.session.workspace)).isDirectory()) throw new Error('the workspace is no directory')
  const events = createEventQueue<DriverEvent>()
  let turn: { readonly abort: AbortController; readonly over: Promise<void> } | undefined
  let closed = false

  const begin = (text: string): void => {
    const abort = new AbortController()
    events.push({ event: 'turn-started' })
    const over = play({ options, emit: (event) => events.push(event), signal: abort.signal }, text)
      .catch((error: unknown): TurnEnded => ({ event: 'turn-ended', ok: false, reason: messageOf(error) }))
      .then((ended) => {
        // idle before it is said: the reader may send at once
        turn = undefined
        events.push(ended)
      })
    turn = { abort, over }
  }
  events.push({ event: 'ready' })
  return {
    events,
    send(text) {
      if (closed || turn !== undefined) throw new Error('script takes one message at a time')
      begin(text)
    },
    interrupt: () => turn?.abort.abort(),
    async close() {
      closed = true
      turn?.abort.abort()
      await turn?.over
      events.push({ event: 'exited', code: 0, signal: null, expected: true })
      events.end()
    },
  }
}
