import { text } from 'node:stream/consumers'
import { describe, expect, test } from 'vitest'
import * as fc from 'fast-check'
import { sendJson, sendStream, sse, streamOf } from '../../fixtures/gateway/provider.ts'
import { createUsageReader } from '../../src/gateway/usage.ts'
import { MESSAGE, MODEL, openWorld, RUN } from './world.ts'

const COUNTS = { input: 1234, output: 567, read: 89, written: 10 }
const READ = { inputTokens: 1234, outputTokens: 567, cacheReadTokens: 89, cacheWriteTokens: 10 }
const SSE = 'text/event-stream; charset=utf-8'

describe('usage', () => {
  test('is read from a stream and from a plain answer, exactly, with whose it is', async () => {
    await using world = await openWorld()
    void world.provider.next(sendStream('a "usage": {"output_tokens": 9} of sorts', COUNTS))
    const streamed = await world.ask({ body: { ...MESSAGE, stream: true } })
    expect(streamed.text).toBe(streamOf('a "usage": {"output_tokens": 9} of sorts', COUNTS).join(''))
    void world.provider.next(sendJson('hi', COUNTS))
    await world.ask()
    const entry = { run: RUN, instance: 'coder', role: 'coder', task: 't-1', family: 'sonnet', model: MODEL, ...READ, complete: true }
    expect(world.usage).toEqual([entry, entry])
  })

  test('of an answer that breaks off is what was said until then, and marked', async () => {
    await using world = await openWorld()
    void world.provider.next((response) => {
      response.writeHead(200, { 'content-type': SSE })
      response.write(streamOf('x', COUNTS)[0])
      response.write('event: message_delta\nda', () => response.destroy())
    })
    await expect(world.start().then(text)).rejects.toThrow('aborted')
    expect(world.usage).toMatchObject([{ ...READ, outputTokens: 1, complete: false }])
  })

  test('is not made up for a refusal', async () => {
    await using world = await openWorld()
    void world.provider.next((response) => response.writeHead(400, { 'content-type': 'application/json' }).end('{"usage":{"input_tokens":5}}'))
    expect((await world.ask()).status).toBe(400)
    expect(world.usage).toEqual([])
  })

  test('is the same however the bytes arrive', () => {
    const whole = Buffer.from([': comment\r\n\r\n', ...streamOf('ü€😀\n\n"usage"', COUNTS), sse({ type: 'ping' })].join(''))
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: whole.length }), { maxLength: 12 }), (cuts) => {
        const reader = createUsageReader(SSE)
        const edges = [0, ...cuts.sort((a, b) => a - b), whole.length]
        edges.slice(1).forEach((end, index) => reader.push(whole.subarray(edges[index], end)))
        expect(reader.result()).toEqual({ ...READ, complete: true })
      }),
    )
  })

  test('is read past lines of any length and values that are none', () => {
    const reader = createUsageReader(SSE)
    const huge = sse({ type: 'content_block_start', content_block: { type: 'tool_result', text: 'x'.repeat(3 * 1024 * 1024), usage: { input_tokens: 1 } } })
    const [start, ...rest] = streamOf('x', COUNTS)
    for (const event of [start, huge, 'data: {"type":"message_delta","usage":{"input_tokens":-1,"output_tokens":"7"}}\n\n', 'data: nonsense\n\n', ...rest]) {
      reader.push(Buffer.from(event ?? ''))
    }
    expect(reader.result()).toEqual({ ...READ, complete: true })
  })

  test('of a plain answer that is too big, or is none, is unknown and says so', () => {
    for (const answer of ['x'.repeat(17 * 1024 * 1024), 'null', '{}', '{"usage":7}']) {
      const reader = createUsageReader('application/json')
      reader.push(Buffer.from(answer))
      expect(reader.result()).toEqual({ inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0, complete: false })
    }
  })
})
