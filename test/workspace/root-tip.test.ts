import { execFileSync } from 'node:child_process'
import { mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { plainTipOf } from '../../src/workspace/root.ts'

const ENV = { PATH: '/usr/bin:/bin', HOME: '/nonexistent', GIT_CONFIG_NOSYSTEM: '1' }
let root: string
let dir: string
let tip: string
const git = (...args: string[]): string =>
  execFileSync('git', ['-C', root, '-c', 'user.name=a', '-c', 'user.email=a@example.invalid', ...args], { env: ENV, encoding: 'utf8' }).trim()

beforeEach(() => {
  root = mkdtempSync('/tmp/mrt-')
  dir = join(root, '.git')
  git('init', '-q', '-b', 'main')
  git('commit', '-q', '--allow-empty', '-m', 'one')
  tip = git('rev-parse', 'HEAD')
})
afterEach(() => rmSync(root, { recursive: true, force: true }))

test('a branch is found loose and packed, the loose one first', async () => {
  expect(await plainTipOf(dir, 'main')).toBe(tip)
  git('branch', 'other/one')
  git('pack-refs', '--all')
  expect(await plainTipOf(dir, 'main')).toBe(tip)
  expect(await plainTipOf(dir, 'other/one')).toBe(tip)
  git('commit', '-q', '--allow-empty', '-m', 'two')
  expect(await plainTipOf(dir, 'main')).toBe(git('rev-parse', 'HEAD'))
})

test('what is not plain is left to git: a link, a FIFO, a symbolic ref, a torn file, one that is not there', async () => {
  const ref = join(dir, 'refs/heads/main')
  renameSync(ref, join(root, 'aside'))
  expect(await plainTipOf(dir, 'main')).toBeNull()
  symlinkSync(join(root, 'aside'), ref)
  expect(await plainTipOf(dir, 'main')).toBeNull()
  rmSync(ref)
  execFileSync('mkfifo', [ref])
  expect(await plainTipOf(dir, 'main')).toBeNull()
  rmSync(ref)
  for (const text of ['ref: refs/heads/other\n', tip.slice(0, 39), '']) {
    writeFileSync(ref, text)
    expect(await plainTipOf(dir, 'main')).toBeNull()
  }
  writeFileSync(ref, `${tip}\n`)
  expect(await plainTipOf(dir, 'main')).toBe(tip)
})
