import type { Socket } from 'node:net'
import { AppError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import { parseParams } from '../../bus/params.ts'
import { PROTOCOL_VERSION } from '../../protocol/common.ts'
import { controlHelloSchema } from '../../protocol/control.ts'
import { FRAME_LIMIT } from '../../protocol/frame.ts'
import { serveCalls } from '../../protocol/serve-calls.ts'
import { isFounderPeer } from '../peers.ts'
import type { Answer } from './methods.ts'

interface ServeDeps {
  readonly log: Log
  readonly version: string
  readonly firstFrameMs: number
  readonly answers: ReadonlyMap<string, Answer>
  /** Directory and socket still are what this host made: they are the founder's credential. */
  readonly intact: () => boolean
  /** The host stops: waits are answered, and nothing more is taken. */
  readonly closing: AbortSignal
}

/** Serves one connection of the founder's door. */
export function serveControl(deps: ServeDeps, socket: Socket): void {
  const { log, version, answers } = deps
  const greet = (method: string, params: unknown): { session: null; result: unknown } => {
    if (method !== 'hello') throw new AppError('invalid-request', 'the first frame is hello')
    // before anything else: another version may also say more in its hello
    const protocol = typeof params === 'object' && params !== null && 'protocol' in params ? params.protocol : undefined
    if (typeof protocol === 'number' && protocol !== PROTOCOL_VERSION) {
      throw new AppError('protocol-mismatch', `this bus host speaks protocol ${String(PROTOCOL_VERSION)}, not ${String(protocol)}`, {
        hint: 'mosaic bus restart',
      })
    }
    parseParams(controlHelloSchema, params)
    if (!deps.intact()) throw new AppError('data-root-unsafe', 'control.sock is not what this bus host made', { hint: 'mosaic bus restart' })
    if (!isFounderPeer(socket)) throw new AppError('not-permitted', "the control socket is its owner's alone")
    return { session: null, result: { protocol: PROTOCOL_VERSION, version } }
  }
  serveCalls(socket, {
    frameLimit: FRAME_LIMIT.control,
    firstFrameMs: deps.firstFrameMs,
    log,
    closing: deps.closing,
    hello: async (call) => Promise.resolve(greet(call.method, call.params)),
    call: (_session, call, signal) => {
      const answer = answers.get(call.method)
      if (answer === undefined)
        throw new AppError('invalid-request', `there is no method ${JSON.stringify(call.method)} in this bus host, which is mosaic ${version}`, {
          hint: 'after an upgrade: mosaic bus restart',
        })
      return answer(call.params, signal)
    },
  })
}
