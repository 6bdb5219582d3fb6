import { setImmediate } from 'node:timers/promises'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createJsonScan, type JsonVisitor } from '../../src/gateway/json-scan.ts'
import { modelsOf } from '../../src/gateway/models.ts'

const MIB = 1024 ** 2
const IGNORED: JsonVisitor = { opened: () => undefined, closed: () => undefined, key: () => undefined, scalar: () => undefined }

function scans(text: string, splits: readonly number[] = []): boolean {
  const bytes = Buffer.from(text)
  const scan = createJsonScan(bytes, IGNORED)
  try {
    for (const split of [...splits].sort((a, b) => a - b)) scan.to(Math.min(split, bytes.length))
    scan.to(bytes.length)
    scan.finish()
    return true
  } catch {
    return false
  }
}

function parses(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

describe('a scan takes what JSON.parse takes, and nothing else', () => {
  const splits = fc.array(fc.nat(200))

  test('of texts that are JSON, wherever it stops on the way', () => {
    fc.assert(fc.property(fc.json({ maxDepth: 6 }), splits, (text, at) => scans(text, at)))
  })

  test('of texts that are almost JSON', () => {
    const piece = fc.constantFrom(
      '{',
      '}',
      '[',
      ']',
      ':',
      ',',
      '"',
      '\\',
      '\\u00',
      '\\u00e9',
      '0',
      '-',
      '1.5',
      'e+',
      'true',
      'nul',
      'null',
      ' ',
      '\n',
      '\t',
      '\0',
      'a',
      'é',
    )
    const mutated = fc.tuple(fc.json({ maxDepth: 4 }), fc.nat(), fc.nat(2), piece).map(([text, at, gone, more]) => {
      const place = at % (text.length + 1)
      return text.slice(0, place) + more + text.slice(place + gone)
    })
    // a surrogate that was cut in two is no UTF-8, which is refused before a scan
    const text = fc
      .oneof(
        fc.array(piece, { maxLength: 12 }).map((pieces) => pieces.join('')),
        mutated,
      )
      .filter((made) => !/\p{Surrogate}/u.test(made))
    fc.assert(
      fc.property(text, splits, (made, at) => scans(made, at) === parses(made)),
      { numRuns: 3000 },
    )
  })
})

const refusal = (text: string): Promise<unknown> => modelsOf(Buffer.from(text)).then(undefined, (error: unknown) => (error as Error).message)

describe('the models of a request', () => {
  test.each([
    ['{"model":"m"}', ['m']],
    ['{"\\u006dodel":"\\u006d"}', ['m']],
    ['{"model":"m","tools":[{"model":"a"},{"model":"b"},{"model":null},{"name":"x"}]}', ['m', 'a', 'b']],
    ['{"tools":[{"input_schema":{"model":{"model":"x"}}}],"model":"m"}', ['m']],
    ['{"model":"m","messages":[{"model":"x","tools":[{"model":"y"}],"Model":1,"MODEL":2}]}', ['m']],
    ['{"model":"m","tools":"none"}', ['m']],
  ])('of %s are %j', async (text, models) => {
    expect(await modelsOf(Buffer.from(text))).toEqual(models)
  })

  test.each([
    ['a key twice, one escaped', '{"model":"m","m\\u006fdel":"x"}', 'the body names model twice'],
    ['a key in another case', '{"model":"m","MODEL":"x"}', 'the body spells model in another way'],
    ['a key in another case, escaped', '{"model":"m","\\u004dodel":"x"}', 'the body spells model in another way'],
    ['tools twice', '{"model":"m","tools":[],"tools":[{"model":"x"}]}', 'the body names tools twice'],
    ['tools in another case', '{"model":"m","Tools":[{"model":"x"}]}', 'the body spells tools in another way'],
    ['a tool in another case', '{"model":"m","tools":[{"Model":"x"}]}', 'the body spells model in another way'],
    ['a tool that names two', '{"model":"m","tools":[{"model":"m","model":"x"}]}', 'the body names model twice'],
    ['a tool whose model is a list', '{"model":"m","tools":[{"model":["x"]}]}', 'the model of a tool is no name'],
    ['an object as model', '{"model":{"model":"m"}}', 'the body names no model'],
    ['null as model', '{"model":null}', 'the body names no model'],
    ['a list', '["model"]', 'the body is no JSON object'],
    ['a text', '"model"', 'the body is no JSON object'],
    ['two objects', '{"model":"m"}{"model":"x"}', 'the body is no JSON'],
    ['a byte order mark', '\uFEFF{"model":"m"}', 'the body is no JSON'],
    ['a name without end', `{"model":"${'m'.repeat(2000)}"}`, 'the name of a model is longer than 1024 bytes'],
    [
      'a crowd of models',
      `{"model":"m","tools":[${Array.from({ length: 65 }, (_, n) => `{"model":"m${String(n)}"}`).join(',')}]}`,
      'the tools name more than 64 models',
    ],
    ['nesting without end', `{"model":"m","x":${'['.repeat(MIB)}`, 'the body is nested deeper than 256'],
  ])('are not read out of %s', async (_what, text, why) => {
    expect(await refusal(text)).toBe(why)
  })
})

const filled = (head: string, unit: string, tail: string, bytes = 8 * MIB): Buffer => Buffer.from(head + unit.repeat(Math.floor(bytes / unit.length)) + tail)

async function turnsUntil(signal: AbortSignal): Promise<number> {
  let turns = 0
  for (; !signal.aborted; turns++) await setImmediate()
  return turns
}

describe('a body made to be slow', () => {
  test.each([
    ['objects', filled('{"model":"m","x":[', '{},', '{}]}')],
    ['keys', filled('{"model":"m","x":{', '"aaaaa":1,', '"b":2}}')],
    ['one string', filled('{"model":"m","x":"', 'a', '"}')],
  ])('of %s leaves the others their turn', async (_what, body) => {
    const read = new AbortController()
    const others = turnsUntil(read.signal)
    expect(await modelsOf(body)).toEqual(['m'])
    read.abort()
    expect(await others).toBeGreaterThan(500)
  })

  test('is left alone once nobody waits for its answer', async () => {
    await expect(modelsOf(filled('{"model":"m","x":"', 'a', '"}'), AbortSignal.abort())).rejects.toMatchObject({ code: 'timeout' })
  })
})
