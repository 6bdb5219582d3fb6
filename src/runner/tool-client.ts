import { once } from 'node:events'
import { connect } from 'node:net'

/** A tool as the runner lists it. */
export interface ListedTool {
  readonly name: string
  readonly description: string
  readonly inputSchema: Readonly<Record<string, unknown>>
}

/** What the runner answers to one call. */
export interface ToolReply {
  readonly ok: boolean
  readonly result?: unknown
  readonly error?: string
  readonly text?: string
}

export const toolSocketPath = (env: Readonly<Record<string, string | undefined>>): string => env.MOSAIC_TOOL_SOCKET ?? '/run/agent/tools.sock'

/** One request to the runner's tool socket on a connection of its own, and its answer; an abort drops the connection. */
async function ask(path: string, request: object, signal?: AbortSignal): Promise<ToolReply> {
  const socket = connect({ path, ...(signal === undefined ? {} : { signal }) })
  try {
    await once(socket, 'connect')
    socket.write(`${JSON.stringify(request)}\n`)
    const chunks: Buffer[] = []
    for await (const chunk of socket) {
      chunks.push(chunk as Buffer)
      if ((chunk as Buffer).includes(0x0a)) return JSON.parse(Buffer.concat(chunks).toString('utf8')) as ToolReply
    }
    throw new Error('the runner closed the tool socket without an answer')
  } finally {
    socket.destroy()
  }
}

export async function listTools(path: string): Promise<readonly ListedTool[]> {
  return (await ask(path, { list: true })).result as readonly ListedTool[]
}

export const callTool = (path: string, tool: string, args: unknown, signal?: AbortSignal): Promise<ToolReply> => ask(path, { tool, args: args ?? {} }, signal)

/** An answer as a model reads it: the result's JSON, or a refusal's code and why. */
export const toText = (reply: ToolReply): string =>
  reply.ok ? JSON.stringify(reply.result ?? { ok: true }) : `${reply.error ?? 'internal'}: ${reply.text ?? 'no reason given'}`
