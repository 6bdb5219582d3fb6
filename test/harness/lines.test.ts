import { mkdtemp, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createLineReader, type LongLine } from '../../src/harness/lines.ts'

let dir: string

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'mrn-'))
})
afterEach(() => rm(dir, { recursive: true, force: true }))

function read(chunks: readonly Buffer[], capBytes?: number): { readonly lines: string[]; readonly long: LongLine[] } {
  const lines: string[] = []
  const long: LongLine[] = []
  const options = capBytes === undefined ? {} : { capBytes }
  const reader = createLineReader({ onLine: (line) => lines.push(line), onLong: (line) => long.push(line), spillDir: join(dir, 'spill'), ...options })
  for (const chunk of chunks) reader.push(chunk)
  reader.end()
  return { lines, long }
}

const split = (bytes: Buffer, cuts: readonly number[]): Buffer[] => {
  const ends = [...new Set(cuts.map((cut) => cut % (bytes.length + 1)))].sort((a, b) => a - b)
  return [0, ...ends].map((from, n) => bytes.subarray(from, ends[n] ?? bytes.length))
}

describe('createLineReader', () => {
  test('lines are whole, however they were split; only \\n ends one', () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: 'grapheme' })), fc.array(fc.nat(500)), (texts, cuts) => {
        const lines = texts.map((text) => `${text.replaceAll('\n', '')}\u2028\r`)
        expect(read(split(Buffer.from(lines.map((line) => `${line}\n`).join('')), cuts)).lines).toEqual(lines)
      }),
    )
  })

  test('the last line needs no newline', () => {
    expect(read([Buffer.from('one\n\ntwo')]).lines).toEqual(['one', '', 'two'])
  })

  test('a line past the cap is in a file, whole; those around it are lines as ever', async () => {
    const text = `{"type":"result",${'y'.repeat(300_000)}}`
    const { lines, long } = read(split(Buffer.from(`before\n${text}\nafter\n`), [5, 70_000, 200_000, 300_010]), 1000)
    expect(lines).toEqual(['before', 'after'])
    expect(long).toHaveLength(1)
    const [{ head, tail, bytes, path } = { head: '', tail: '', bytes: 0, path: '' }] = long
    expect(bytes).toBe(text.length)
    expect(text.startsWith(head)).toBe(true)
    expect(text.endsWith(tail)).toBe(true)
    expect(head.length).toBeGreaterThan(900)
    expect(tail).toHaveLength(64 * 1024)
    expect(await readFile(path, 'utf8')).toBe(text)
    expect((await stat(path)).mode & 0o777).toBe(0o600)
  })

  test('64 MiB is no long line', () => {
    const { lines, long } = read([Buffer.alloc(64 * 1024 * 1024, 'x'), Buffer.from('\n')])
    expect([lines[0]?.length, long.length]).toEqual([64 * 1024 * 1024, 0])
  })
})
