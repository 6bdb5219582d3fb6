import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { dirname, join } from 'node:path'
import { silentLog } from '../../src/core/log.ts'
import type { Call } from '../../src/protocol/common.ts'
import { FRAME_LIMIT } from '../../src/protocol/frame.ts'
import { serveCalls } from '../../src/protocol/serve-calls.ts'

export type Answer = (params: Readonly<Record<string, unknown>>, signal: AbortSignal) => unknown

export interface CallServer extends AsyncDisposable {
  /** A temporary root of its own; the socket is where a bus host would have it. */
  readonly dataRoot: string
  readonly path: string
  /** Every request in the order of its arrival, hello first. */
  readonly calls: readonly Call[]
  /** Closes every connection and stops listening, as a host that ends does. */
  stop(): Promise<void>
}

/** A control server on a real socket whose methods are functions; what they throw is refused as the real one refuses. */
export async function openCallServer(methods: Readonly<Record<string, Answer>>): Promise<CallServer> {
  const dataRoot = mkdtempSync('/tmp/mc-')
  const path = join(dataRoot, 'bus-host', 'control.sock')
  mkdirSync(dirname(path), { mode: 0o700 })
  const calls: Call[] = []
  const sockets = new Set<Socket>()
  const answer = async (call: Call, signal: AbortSignal): Promise<unknown> => {
    calls.push(call)
    const method = methods[call.method]
    if (method === undefined) throw new Error(`the test answers no ${call.method}`)
    return await method(call.params, signal)
  }
  const server = createServer((socket) => {
    sockets.add(socket)
    serveCalls<null>(socket, {
      frameLimit: FRAME_LIMIT.control,
      firstFrameMs: 10_000,
      log: silentLog,
      hello: async (call, signal) => ({ session: null, result: 'hello' in methods ? await answer(call, signal) : (calls.push(call), {}) }),
      call: (_, call, signal) => answer(call, signal),
    })
  })
  await new Promise<void>((resolve) => server.listen(path, resolve))
  const stop = async (): Promise<void> => {
    for (const socket of sockets) socket.destroy()
    await new Promise((resolve) => server.close(resolve))
  }
  return {
    dataRoot,
    path,
    calls,
    stop,
    async [Symbol.asyncDispose]() {
      await stop()
      rmSync(dataRoot, { recursive: true, force: true })
    },
  }
}
