import type { z } from 'zod'
import { isErrorCode } from '../core/codes.ts'
import { AppError } from '../core/errors.ts'
import type { Log } from '../core/log.ts'
import type { HelperBind, HelperResult, RunHelper } from '../core/run-helper.ts'
import { prepareReplySchema, type PrepareRequest } from '../protocol/prepare.ts'

const REPLY_BYTES = 1024 * 1024

export interface AskDeps {
  readonly runHelper: RunHelper
  /** The helper program as the sandbox sees it: node and the path of prepare.mjs. */
  readonly helperCommand: readonly string[]
  readonly log: Log
}

export interface AskOptions {
  readonly binds: readonly HelperBind[]
  readonly timeoutMs: number
  readonly signal?: AbortSignal | undefined
}

export const prepareTimeout = (what: string): AppError => new AppError('prepare-timeout', `${what} did not end in time`)

/** An error that crossed as code and message: a code that this version does not know keeps its message. */
const toError = (code: string, message: string): AppError => new AppError(isErrorCode(code) ? code : 'internal', message)

function parseReply(result: HelperResult): unknown {
  try {
    return JSON.parse(result.stdout.toString('utf8'))
  } catch {
    return undefined
  }
}

function judge<T>(request: PrepareRequest, schema: z.ZodType<T>, result: HelperResult): T {
  if (result.timedOut) throw prepareTimeout(`the helper's ${request.op}`)
  const reply = prepareReplySchema.safeParse(parseReply(result))
  if (reply.success && !reply.data.ok) throw toError(reply.data.code, reply.data.message)
  const value = reply.success && reply.data.ok ? schema.safeParse(reply.data.result) : undefined
  if (value?.success === true) return value.data
  const how = result.signal === null ? `exit ${String(result.exitCode)}` : result.signal
  throw new AppError('internal', `the helper's ${request.op} gave no answer (${how}): ${result.stderr.trim().slice(-500)}`)
}

/** One request to one helper in a sandbox of its own. Throws what the helper refused, `prepare-timeout` at our deadline, `interrupted` when cancelled. */
export async function askHelper<T>(deps: AskDeps, request: PrepareRequest, schema: z.ZodType<T>, options: AskOptions): Promise<T> {
  const { binds, timeoutMs, signal } = options
  if (timeoutMs <= 0) throw prepareTimeout(`the helper's ${request.op}`)
  const cancelled = (): AppError => new AppError('interrupted', `the helper's ${request.op} was cancelled`)
  const run = deps.runHelper({
    binds,
    command: deps.helperCommand,
    cwd: '/',
    env: { PATH: '/usr/local/bin:/usr/bin:/bin', HOME: '/tmp', LC_ALL: 'C' },
    input: JSON.stringify(request),
    timeoutMs,
    stdoutLimit: REPLY_BYTES,
    ...(signal === undefined ? {} : { signal }),
  })
  const result = await run.catch((error: unknown) => {
    throw signal?.aborted === true ? cancelled() : error
  })
  if (result.stderr !== '') deps.log.debug({ op: request.op, stderr: result.stderr.slice(0, 4096) }, 'preparation helper wrote')
  if (signal?.aborted === true) throw cancelled()
  return judge(request, schema, result)
}
