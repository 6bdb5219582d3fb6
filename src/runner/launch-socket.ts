import { createConnection } from 'node:net'
import { AppError, messageOf } from '../core/errors.ts'
import { createLineDecoder, parseFrame, toFrame } from '../protocol/frame.ts'

const REPLY_BYTES = 64 * 1024

/** One request on the launch socket and its one reply, which may take as long as a launch does. Throws `host-not-running`. */
export async function askLaunch(path: string, request: object, signal: AbortSignal): Promise<Readonly<Record<string, unknown>>> {
  const socket = createConnection({ path, signal })
  const decoder = createLineDecoder(REPLY_BYTES)
  try {
    socket.write(toFrame(request))
    for await (const chunk of socket) {
      const [line] = decoder.push(chunk as Buffer)
      if (line !== undefined) return parseFrame(line)
    }
    throw new AppError('host-not-running', 'the bus host closed the launch socket without an answer')
  } catch (error) {
    throw error instanceof AppError ? error : new AppError('host-not-running', `the launch socket fails: ${messageOf(error)}`)
  } finally {
    socket.destroy()
  }
}
