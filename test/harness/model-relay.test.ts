import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import { once } from 'node:events'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type ModelRelay, openModelRelay, resetsAt } from '../../src/harness/model-relay.ts'

let dir: string
let server: Server
let relay: ModelRelay
let limits: (number | undefined)[]

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'mry-'))
  limits = []
  const socketPath = join(dir, 'm.sock')
  server = createServer((request, response) => {
    if (request.url === '/limit') response.writeHead(429, { 'retry-after': '30' }).end('no')
    else if (request.url === '/cut') response.writeHead(200).write('half', () => response.destroy())
    else response.writeHead(200, { 'x-seen': request.headers['x-api-key'] }).end(`${request.method ?? ''} ${request.url ?? ''}`)
  })
  server.listen(socketPath)
  await once(server, 'listening')
  relay = await openModelRelay({ socketPath, onLimit: (atMs) => limits.push(atMs), now: () => 1000 })
})
afterEach(async () => {
  await relay[Symbol.asyncDispose]()
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
  await rm(dir, { recursive: true, force: true })
})

describe('openModelRelay', () => {
  test('passes request and answer on as they are', async () => {
    const answer = await fetch(`${relay.url}/v1/messages?beta=true`, { method: 'POST', body: '{}', headers: { 'x-api-key': 'stand-in' } })
    expect([answer.status, answer.headers.get('x-seen'), await answer.text()]).toEqual([200, 'stand-in', 'POST /v1/messages?beta=true'])
    expect(limits).toEqual([])
  })

  test('hears a limit, and when it ends', async () => {
    expect((await fetch(`${relay.url}/limit`)).status).toBe(429)
    expect(limits).toEqual([31_000])
  })

  test('an answer that breaks off breaks off; a socket that is gone is a bad gateway', async () => {
    await expect(fetch(`${relay.url}/cut`).then((answer) => answer.text())).rejects.toThrow()
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
    expect((await fetch(`${relay.url}/v1/messages`)).status).toBe(502)
  })
})

test.each([
  [{ 'retry-after': '30' }, 31_000],
  [{ 'retry-after': 'Thu, 01 Jan 1970 00:01:00 GMT' }, 60_000],
  [{ 'anthropic-ratelimit-unified-reset': '90' }, 90_000],
  [{ 'retry-after': 'soon' }, undefined],
  [{}, undefined],
])('the end of a limit by %j', (headers, expected) => {
  expect(resetsAt(headers, 1000)).toBe(expected)
})
