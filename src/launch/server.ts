import type { Socket } from 'node:net'
import { codeOf } from '../core/errors.ts'
import type { ErrorCode } from '../core/codes.ts'
import type { Log } from '../core/log.ts'
import type { SessionPrincipal } from '../protocol/common.ts'
import { FRAME_LIMIT, parseFrame } from '../protocol/frame.ts'
import { type LaunchReply, type LaunchRequest, launchRequestSchema } from '../protocol/launch.ts'
import { serveOnce } from '../protocol/serve-once.ts'

interface LaunchServerDeps {
  readonly log: Log
  readonly firstFrameMs: number
  /** The live run whose capability this is, seen from this connection; null: `unauthenticated`. */
  readonly authenticate: (cap: string, socket: Socket) => SessionPrincipal | null
  readonly launch: (asker: SessionPrincipal, request: LaunchRequest) => Promise<LaunchReply>
  /** Steps 1 and 2 have no trustworthy asker: counted, logged rate-limited. */
  readonly refusedUnknown: (code: ErrorCode) => void
}

const parse = (line: Buffer | null): LaunchRequest | null => {
  if (line === null) return null
  try {
    return launchRequestSchema.safeParse(parseFrame(line)).data ?? null
  } catch {
    return null
  }
}

/** Serves one connection of launch.sock: refusals are exactly `{"ok":false,"error":"code"}`, their why goes to the launch log. */
export function serveLaunch(deps: LaunchServerDeps, socket: Socket): void {
  const refuse = (error: ErrorCode): LaunchReply => {
    deps.refusedUnknown(error)
    return { ok: false, error }
  }
  const answer = async (line: Buffer | null): Promise<LaunchReply> => {
    const request = parse(line)
    if (request === null) return refuse('invalid-request')
    const asker = deps.authenticate(request.cap, socket)
    if (asker === null) return refuse('unauthenticated')
    try {
      return await deps.launch(asker, request)
    } catch (error) {
      const code = codeOf(error)
      if (code === 'internal') deps.log.error({ err: error, instance: request.instance }, 'launch failed')
      return { ok: false, error: code }
    }
  }
  serveOnce(socket, { frameLimit: FRAME_LIMIT.launch, firstFrameMs: deps.firstFrameMs, log: deps.log, answer })
}
