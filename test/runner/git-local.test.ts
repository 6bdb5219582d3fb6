import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { SessionFile } from '../../src/protocol/session.ts'
import { createGit, openLookup } from '../../src/runner/git/local.ts'
import { runGitTool } from '../../src/runner/git/tools.ts'
import { createTools } from '../../src/runner/tools.ts'

const env = { PATH: '/usr/bin:/bin', HOME: '/nonexistent', GIT_CONFIG_NOSYSTEM: '1' }
const who = ['-c', 'user.name=a', '-c', 'user.email=a@example.invalid']
const { signal } = new AbortController()
let root: string
let clone: string

beforeEach(() => {
  root = mkdtempSync('/tmp/mgl-')
  clone = join(root, 'stack')
  mkdirSync(clone)
  execFileSync('git', ['-C', clone, 'init', '-q'], { env })
  execFileSync('git', ['-C', clone, ...who, 'commit', '-q', '--allow-empty', '-m', 'one'], { env })
})
afterEach(() => rmSync(root, { recursive: true, force: true }))

/** Input that goes on for as long as somebody reads. */
async function* endless(): AsyncIterable<Buffer> {
  for (;;) {
    await new Promise(setImmediate)
    yield Buffer.from('x')
  }
}

function replaceClone(): void {
  rmSync(clone, { recursive: true })
  writeFileSync(clone, '')
}

/** What an agent can make of its clone, and what it is told then. */
const TROUBLES = [
  { name: 'removed', make: () => rmSync(clone, { recursive: true }), path: env.PATH, text: 'the clone is gone' },
  { name: 'a file', make: replaceClone, path: env.PATH, text: 'git cannot be run: spawn ENOTDIR' },
  { name: 'there, but no git is', make: () => undefined, path: '/nonexistent', text: 'git cannot be run: spawn git ENOENT' },
] as const

describe.each(TROUBLES)('the clone is $name', ({ make, path, text }) => {
  beforeEach(make)
  const place = () => ({ cwd: clone, env: { ...env, PATH: path }, signal })

  test('git is a refusal at once, whatever it was to read', async () => {
    const git = createGit(place())
    await expect(git(['rev-parse', 'HEAD'])).rejects.toMatchObject({ code: 'file-unusable', message: text })
    await expect(git(['index-pack', '--stdin'], { input: endless() })).rejects.toMatchObject({ code: 'file-unusable', message: text })
  })

  test('so is a look for objects', async () => {
    const look = async (): Promise<unknown> => {
      using lookup = openLookup(place())
      return await lookup.find(['HEAD', 'main'])
    }
    await expect(look()).rejects.toMatchObject({ code: 'file-unusable', message: text })
  })
})

test('in a clone that is there, git runs and objects are found', async () => {
  const place = { cwd: clone, env, signal }
  const { status, stdout } = await createGit(place)(['rev-parse', 'HEAD'])
  expect(status).toBe(0)
  using lookup = openLookup(place)
  expect(await lookup.find(['HEAD', 'nothing'])).toEqual([{ type: 'commit', oid: stdout.trim() }, undefined])
})

test('an agent that removed its clone is told so by push and fetch', async () => {
  const session = { task: 't-1', projects: [{ id: 'stack', path: clone, branch: 'main', kept: null }] } as unknown as SessionFile
  const door = { path: join(root, 'nobody.sock'), toRequest: (header: object) => header, signal }
  const callTool = createTools({
    callBus: () => Promise.reject(new Error('no bus')),
    launch: null,
    git: (tool, args) => runGitTool({ session, door, projectOf: () => Promise.resolve('stack'), signal }, tool, args),
    currentTurn: () => undefined,
  })
  // with its clone, it gets as far as to the host
  expect(await callTool('fetch', {})).toMatchObject({ ok: false, error: 'host-not-running' })
  rmSync(clone, { recursive: true })
  expect(await callTool('fetch', {})).toEqual({ ok: false, error: 'file-unusable', text: 'the clone is gone' })
  expect(await callTool('push', {})).toEqual({ ok: false, error: 'file-unusable', text: 'the clone is gone' })
})
