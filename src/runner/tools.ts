import { CODES, type ErrorCode, isErrorCode } from '../core/codes.ts'
import { AppError } from '../core/errors.ts'
import type { CallTool, ToolAnswer } from '../harness/contract.ts'
import type { BusMethod } from '../protocol/bus.ts'
import type { MessageClass } from '../protocol/common.ts'
import type { ToolName } from '../protocol/tools.ts'

type Arguments = Readonly<Record<string, unknown>>

/** The tools that are one method of the bus. The host judges grants and arguments, and records what it denies. */
const BUS_TOOLS = {
  stop: 'session.stop',
  send: 'message.send',
  owed: 'message.owed',
  agents: 'agents',
  tasks: 'task.list',
  task_create: 'task.create',
  task_close: 'task.close',
  request_review: 'review.request',
  verdict: 'review.verdict',
  trail: 'trail',
} as const satisfies Readonly<Record<Exclude<ToolName, GitTool | 'launch' | 'answer_later'>, BusMethod>>

export type BusTool = keyof typeof BUS_TOOLS
/** The tools that are an exchange with the git socket. */
export type GitTool = Extract<ToolName, 'push' | 'fetch'>
const isBusTool = (name: string): name is BusTool => Object.hasOwn(BUS_TOOLS, name)
export const methodOf = (tool: BusTool): BusMethod => BUS_TOOLS[tool]

/** What the turn under way has said about its own end. */
export interface TurnMarks {
  readonly id: string
  readonly class: MessageClass
  later: boolean
  answered: boolean
}

export interface ToolDeps {
  readonly callBus: (method: BusMethod, params: Arguments) => Promise<unknown>
  /** Asks the launch socket, with the capability; null where the role has none. */
  readonly launch: ((request: Arguments) => Promise<Arguments>) | null
  /** Pushes or fetches; null where the role has no git socket. */
  readonly git: ((tool: GitTool, args: Arguments) => Promise<unknown>) | null
  readonly currentTurn: () => TurnMarks | undefined
}

const HOST_PATH = /(^|[^\w.])\/[\w.]/

/** A refusal as an agent is told it: the reason where there is one that names no path, else the code's fixed text. */
function refuse(error: ErrorCode, why = ''): ToolAnswer {
  return { ok: false, error, text: why === '' || HOST_PATH.test(why) ? CODES[error].text : why }
}

const accept = (result: unknown): ToolAnswer => ({ ok: true, result: result ?? { ok: true } })

async function launch({ launch: ask }: ToolDeps, args: Arguments): Promise<ToolAnswer> {
  if (ask === null) return refuse('not-permitted')
  if (Object.hasOwn(args, 'cap')) return refuse('invalid-request', 'launch takes no argument cap')
  const reply = await ask(args)
  if (reply.ok === true) return accept(reply)
  return refuse(typeof reply.error === 'string' && isErrorCode(reply.error) ? reply.error : 'internal')
}

function answerLater({ currentTurn }: ToolDeps): ToolAnswer {
  const turn = currentTurn()
  if (turn?.class !== 'REQUEST') return refuse('not-owed', 'this turn answers no REQUEST')
  turn.later = true
  return accept({ ok: true, in_reply_to: turn.id })
}

async function callBus({ callBus: call, currentTurn }: ToolDeps, tool: BusTool, args: Arguments): Promise<ToolAnswer> {
  const result = await call(BUS_TOOLS[tool], args)
  const turn = currentTurn()
  if (tool === 'send' && args.class === 'RESULT' && turn !== undefined && args.in_reply_to === turn.id) turn.answered = true
  return accept(result)
}

async function dispatch(deps: ToolDeps, name: string, args: Arguments): Promise<ToolAnswer> {
  if (isBusTool(name)) return await callBus(deps, name, args)
  if (name === 'launch') return await launch(deps, args)
  if (name === 'answer_later') return answerLater(deps)
  if (name === 'push' || name === 'fetch') return deps.git === null ? refuse('not-permitted') : accept(await deps.git(name, args))
  return refuse('invalid-request', `there is no tool ${name}`)
}

/** The tools of a session; every refusal is an answer. */
export const createTools =
  (deps: ToolDeps): CallTool =>
  async (name, args) => {
    try {
      return await dispatch(deps, name, args)
    } catch (error) {
      return error instanceof AppError ? refuse(error.code, error.message) : refuse('internal')
    }
  }
