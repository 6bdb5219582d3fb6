import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'
import { CallToolRequestSchema, ListToolsRequestSchema, type CallToolResult } from '@modelcontextprotocol/sdk/types.js'
import { callTool, listTools, toolSocketPath, toText } from './tool-client.ts'

/** The tools of the session over MCP: a pipe to the runner, which alone holds the capability. */
const path = toolSocketPath(process.env)
/** Asked for before anything else: without the runner there is no server, which its client can see. */
const tools = [...(await listTools(path))]
/** Its low-level half takes the JSON schemas as they are. */
const { server } = new McpServer({ name: 'mosaic', version: '1' }, { capabilities: { tools: {} } })

server.setRequestHandler(ListToolsRequestSchema, () => ({ tools }))

server.setRequestHandler(CallToolRequestSchema, async ({ params }, { signal }): Promise<CallToolResult> => {
  const reply = await callTool(path, params.name, params.arguments, signal)
  return { content: [{ type: 'text', text: toText(reply) }], isError: !reply.ok }
})

await server.connect(new StdioServerTransport())
