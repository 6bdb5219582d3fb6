import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { advanceRef } from '../../src/git/ref-file.ts'

const ENV = {
  PATH: '/usr/bin:/bin',
  HOME: '/nonexistent',
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_AUTHOR_NAME: 'a',
  GIT_AUTHOR_EMAIL: 'a@a',
  GIT_COMMITTER_NAME: 'a',
  GIT_COMMITTER_EMAIL: 'a@a',
}
const REF = 'refs/heads/work/t-1'
let repository: string
let one: string
let two: string

const git = (...args: string[]): string =>
  execFileSync('git', ['-C', repository, ...args], { env: ENV, encoding: 'utf8', stdio: ['pipe', 'pipe', 'pipe'] }).trim()
const at = (): string => git('for-each-ref', '--format=%(objectname)', REF)
const move = (from: string | null, to: string): Promise<boolean> => advanceRef({ repository, ref: REF, from, to })

beforeEach(() => {
  repository = mkdtempSync('/tmp/mrf-')
  git('init', '-q', '--bare')
  const tree = git('mktree', '--missing')
  one = git('commit-tree', '-m', 'one', tree)
  two = git('commit-tree', '-m', 'two', '-p', one, tree)
})
afterEach(() => rmSync(repository, { recursive: true, force: true }))

test('a ref is made, moved, and seen by git; only from where it is', async () => {
  expect(await move(two, one)).toBe(false)
  expect(await move(null, one)).toBe(true)
  expect(at()).toBe(one)
  for (const wrong of [null, two]) expect(await move(wrong, two)).toBe(false)
  expect(at()).toBe(one)
  expect(await move(one, two)).toBe(true)
  expect(at()).toBe(two)
  expect(readdirSync(join(repository, 'refs/heads/work'))).toEqual(['t-1'])
  expect(git('fsck', '--strict')).toBe('')
})

test('a packed ref is moved from where it is packed', async () => {
  git('update-ref', REF, one)
  git('pack-refs', '--all')
  expect(existsSync(join(repository, REF))).toBe(false)
  expect(await move(null, two)).toBe(false)
  expect(await move(one, two)).toBe(true)
  expect(at()).toBe(two)
})

test('a lock keeps it out as it keeps git out, and is removed: under the repository lock it is stale', async () => {
  mkdirSync(join(repository, 'refs/heads/work'))
  writeFileSync(join(repository, `${REF}.lock`), '')
  expect(() => git('update-ref', REF, one)).toThrow(/File exists/)
  expect(await move(null, one)).toBe(false)
  expect(at()).toBe('')
  expect(await move(null, one)).toBe(true)
  expect(at()).toBe(one)
})
