import { appendFileSync, chmodSync, existsSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createVersions } from '../../src/harness/version.ts'

let dir: string
let bin: string
const env = { PATH: '/usr/bin:/bin', SECRET: 'of-the-host' }
const runs = (): number => (existsSync(join(dir, 'runs')) ? readFileSync(join(dir, 'runs'), 'utf8').length : 0)

/** Each run of the program adds a letter to `runs`. */
const write = (path: string, ...lines: string[]): void => {
  writeFileSync(path, ['#!/bin/sh', `printf x >> '${dir}/runs'`, ...lines, ''].join('\n'))
  chmodSync(path, 0o755)
}

beforeEach(() => {
  dir = mkdtempSync('/tmp/mv-')
  bin = join(dir, 'agent')
})
afterEach(() => rmSync(dir, { recursive: true }))

test('a program is run once, by however many ask', async () => {
  write(bin, 'echo "1.0 $SECRET"')
  const versionOf = createVersions()
  expect(await Promise.all([versionOf(bin, env), versionOf(bin, env)])).toEqual(['1.0', '1.0'])
  expect(await versionOf(bin, env)).toBe('1.0')
  expect(runs()).toBe(1)
})

test('… and again when its file was replaced or written to', async () => {
  const versionOf = createVersions()
  write(bin, 'echo 1.0')
  expect(await versionOf(bin, env)).toBe('1.0')
  write(join(dir, 'next'), 'echo 2.0')
  renameSync(join(dir, 'next'), bin)
  expect(await versionOf(bin, env)).toBe('2.0')
  appendFileSync(bin, '# more\n')
  expect(await versionOf(bin, env)).toBe('2.0')
  expect(runs()).toBe(3)
})

test.each(['exit 1', 'echo 1.0; exit 3', 'true', 'kill -9 $$'])('one that gives no version is asked again: %s', async (line) => {
  write(bin, line)
  const versionOf = createVersions()
  expect([await versionOf(bin, env), await versionOf(bin, env)]).toEqual([null, null])
  expect(runs()).toBe(2)
})

test('what hangs has none; what leaves something behind that holds its output has one', async () => {
  const hangs = join(dir, 'hangs')
  write(hangs, 'exec sleep 300')
  write(bin, 'echo 1.0; sleep 300 & echo $! > "$0.pid"')
  const versionOf = createVersions({ timeoutMs: 500 })
  expect(await Promise.all([versionOf(hangs, env), versionOf(bin, env)])).toEqual([null, '1.0'])
  process.kill(Number(readFileSync(`${bin}.pid`, 'utf8')), 'SIGKILL')
})

test('a version may be said on standard error, where standard output says nothing', async () => {
  write(bin, 'echo 0.74.2 >&2')
  expect(await createVersions()(bin, env)).toBe('0.74.2')
  write(bin, 'echo a warning >&2; echo 1.0')
  expect(await createVersions()(bin, env)).toBe('1.0')
})

test('what is not there has none', async () => {
  expect(await createVersions()(join(dir, 'nothing'), env)).toBeNull()
})
