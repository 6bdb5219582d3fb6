import { once } from 'node:events'
import { mkdir } from 'node:fs/promises'
import { createServer, type Server, type Socket } from 'node:net'
import { dirname } from 'node:path'
import { messageOf } from '../core/errors.ts'
import { isObject } from '../core/objects.ts'
import type { CallTool } from '../harness/contract.ts'
import { createLineDecoder, parseFrame, toFrame } from '../protocol/frame.ts'

const LINE_BYTES = 512 * 1024
const MAX_CONNECTIONS = 16

interface ToolServerDeps {
  readonly callTool: CallTool
  /** The tools that this session has, with their JSON schemas. */
  readonly listTools: () => Promise<unknown>
}

/** `{"list":true}` → the tools; `{"tool","args"}` → its answer. */
async function answerTo({ callTool, listTools }: ToolServerDeps, frame: Readonly<Record<string, unknown>>): Promise<unknown> {
  if (frame.list === true) return { ok: true, result: await listTools() }
  const args = frame.args ?? {}
  if (typeof frame.tool !== 'string' || !isObject(args)) return { ok: false, error: 'invalid-request', text: 'a request is {"tool","args"}' }
  return await callTool(frame.tool, args)
}

/** One request a line, one answer a line, in the order asked, until the client ends. */
async function serve(deps: ToolServerDeps, socket: Socket): Promise<void> {
  const decoder = createLineDecoder(LINE_BYTES)
  for await (const chunk of socket.iterator({ destroyOnReturn: false })) {
    for (const line of decoder.push(chunk as Buffer)) {
      if (!socket.write(toFrame(await answerTo(deps, parseFrame(line))))) await once(socket, 'drain')
    }
  }
  socket.end()
}

/** The session's own door to its tools: what runs in the sandbox asks here, and never sees the capability. */
export async function openToolServer(deps: ToolServerDeps & { readonly log: (line: string) => void }, path: string): Promise<AsyncDisposable> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 })
  const sockets = new Set<Socket>()
  const server: Server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
    socket.on('error', () => socket.destroy())
    serve(deps, socket).catch((error: unknown) => {
      deps.log(`a client of the tool socket failed: ${messageOf(error)}`)
      socket.destroy()
    })
  })
  server.maxConnections = MAX_CONNECTIONS
  server.listen(path)
  await once(server, 'listening')
  return {
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
