import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { createServer } from 'node:net'
import { once } from 'node:events'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { openOffer } from '../../src/runner/git/fetch.ts'
import { createGit } from '../../src/runner/git/local.ts'
import { toPlace } from '../../src/runner/git/place.ts'

const env = { PATH: '/usr/bin:/bin', HOME: '/nonexistent', GIT_CONFIG_NOSYSTEM: '1' }
const who = ['-c', 'user.name=a', '-c', 'user.email=a@example.invalid']
let root: string
let tip: string
const git = (...args: string[]): string => execFileSync('git', args, { env, encoding: 'utf8' }).trim()

beforeEach(() => {
  root = mkdtempSync('/tmp/mg-')
  git('init', '-q', join(root, 'stack'))
  git('-C', join(root, 'stack'), ...who, 'commit', '-q', '--allow-empty', '-m', 'one')
  tip = git('-C', join(root, 'stack'), 'rev-parse', 'HEAD')
})
afterEach(() => rmSync(root, { recursive: true, force: true }))

/** What the host is told that the peer has. */
async function havesOf(project: string, more: Record<string, string> = {}): Promise<unknown> {
  const path = join(root, 'git.sock')
  let asked = ''
  const server = createServer((socket) => {
    socket.on('data', (chunk) => {
      asked += chunk.toString('utf8')
      socket.end(`${JSON.stringify({ ok: true, size: 0, tips: {} })}\n`)
    })
  }).listen(path)
  await once(server, 'listening')
  const { signal } = new AbortController()
  const door = { path, toRequest: (header: object) => header, signal }
  const place = toPlace({ cwd: root, env: { ...env, ...more } }, [{ id: 'stack', path: join(root, 'stack'), branch: 'main', kept: null }], project)
  const offer = await openOffer({ git: createGit({ ...place, signal }), door }, { project })
  offer.close()
  server.close()
  await once(server, 'close')
  return (JSON.parse(asked) as { have: unknown }).have
}

test('outside of a repository the host is told what the clone has; inside of one, what that one has', async () => {
  expect(await havesOf('stack')).toEqual([tip])
  expect(await havesOf('site')).not.toContain(tip)
  git('init', '-q', join(root, 'other'))
  expect(await havesOf('stack', { GIT_DIR: join(root, 'other', '.git') })).toEqual([])
})
