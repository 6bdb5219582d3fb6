import { callTool, listTools, toolSocketPath, toText } from './tool-client.ts'

/** What we use of pi's extension interface; the extension imports nothing of pi, so that one file runs on every version. */
interface Pi {
  registerTool(tool: {
    readonly name: string
    readonly label: string
    readonly description: string
    readonly parameters: unknown
    readonly execute: (id: string, params: unknown, signal?: AbortSignal) => Promise<{ readonly content: readonly object[]; readonly details: object }>
  }): void
  registerProvider(name: string, config: object): void
  on(event: 'session_start', handler: () => void): void
  setActiveTools(names: readonly string[]): void
}

/** The session's tools, and the one way to its model. */
async function extension(pi: Pi): Promise<void> {
  const { MOSAIC_MODEL_URL: baseUrl, MOSAIC_TOOLS: tools = '', ANTHROPIC_AUTH_TOKEN: token } = process.env
  // a bearer token is no API key: it goes into the other header
  if (baseUrl !== undefined) pi.registerProvider('anthropic', { baseUrl, ...(token === undefined ? {} : { headers: { authorization: `Bearer ${token}` } }) })
  const path = toolSocketPath(process.env)
  const ours = await listTools(path)
  if (tools !== '') pi.on('session_start', () => pi.setActiveTools([...tools.split(','), ...ours.map(({ name }) => name)]))
  for (const { name, description, inputSchema } of ours) {
    pi.registerTool({
      name,
      label: name,
      description,
      parameters: inputSchema,
      async execute(_id, params, signal) {
        const reply = await callTool(path, name, params, signal)
        // pi takes a refusal from a tool that throws
        if (!reply.ok) throw new Error(toText(reply))
        return { content: [{ type: 'text', text: toText(reply) }], details: {} }
      },
    })
  }
}

export { extension as default }
