import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { packageRoot } from '../../src/core/paths.ts'
import type { CallTool } from '../../src/harness/contract.ts'
import { listTools } from '../../src/runner/tool-schemas.ts'
import { openToolServer } from '../../src/runner/tool-server.ts'

let dir: string
let server: AsyncDisposable
let answer: CallTool

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'mrm-'))
  answer = (name, args) => Promise.resolve({ ok: true, result: { name, args } })
  const deps = { callTool: (...call: Parameters<CallTool>) => answer(...call), log: () => undefined }
  server = await openToolServer({ ...deps, listTools: () => Promise.resolve(listTools(['role.launch'])) }, join(dir, 'tools.sock'))
})
afterEach(async () => {
  await server[Symbol.asyncDispose]()
  await rm(dir, { recursive: true, force: true })
})

async function connect(path = join(dir, 'tools.sock')): Promise<Client & AsyncDisposable> {
  const client = new Client({ name: 'test', version: '1' })
  const env = { PATH: process.env.PATH ?? '', MOSAIC_TOOL_SOCKET: path }
  await client.connect(new StdioClientTransport({ command: process.execPath, args: [join(packageRoot(), 'dist', 'mcp.mjs')], env, stderr: 'ignore' }))
  return Object.assign(client, { [Symbol.asyncDispose]: () => client.close() })
}

describe('the MCP server of a session', () => {
  test('lists the tools of its grants with the schemas of the protocol', async () => {
    await using client = await connect()
    const { tools } = await client.listTools()
    expect(tools.map(({ name }) => name)).toEqual(listTools(['role.launch']).map(({ name }) => name))
    expect(tools.find(({ name }) => name === 'launch')?.inputSchema).toMatchObject({ type: 'object', required: ['instance'], additionalProperties: false })
  })

  test('passes a call on, and its answer back', async () => {
    await using client = await connect()
    expect(await client.callTool({ name: 'launch', arguments: { instance: 'coder' } })).toMatchObject({
      isError: false,
      content: [{ type: 'text', text: '{"name":"launch","args":{"instance":"coder"}}' }],
    })
    expect(await client.callTool({ name: 'owed' })).toMatchObject({ content: [{ text: '{"name":"owed","args":{}}' }] })
  })

  test('a refusal is an error with its code and why', async () => {
    await using client = await connect()
    answer = () => Promise.resolve({ ok: false, error: 'capacity-full', text: 'the model family has no free slot' })
    expect(await client.callTool({ name: 'launch', arguments: { instance: 'coder' } })).toMatchObject({
      isError: true,
      content: [{ type: 'text', text: 'capacity-full: the model family has no free slot' }],
    })
  })

  test('calls do not wait for each other', async () => {
    await using client = await connect()
    let release = (): void => undefined
    const held = new Promise<void>((resolve) => {
      release = resolve
    })
    answer = async (name) => {
      if (name === 'launch') await held
      return { ok: true, result: name }
    }
    const slow = client.callTool({ name: 'launch', arguments: { instance: 'coder' } })
    expect(await client.callTool({ name: 'agents' })).toMatchObject({ content: [{ text: '"agents"' }] })
    release()
    expect(await slow).toMatchObject({ content: [{ text: '"launch"' }] })
  })

  test('a cancelled call lets go of the runner', async () => {
    await using client = await connect()
    const cancel = new AbortController()
    answer = () => {
      cancel.abort()
      return new Promise(() => undefined)
    }
    await expect(client.callTool({ name: 'agents' }, undefined, { signal: cancel.signal })).rejects.toThrow()
    answer = () => Promise.resolve({ ok: true, result: 'again' })
    expect(await client.callTool({ name: 'agents' })).toMatchObject({ content: [{ text: '"again"' }] })
  })

  test('without the runner there is no server', async () => {
    await expect(connect('/nonexistent/tools.sock')).rejects.toThrow()
  })
})
