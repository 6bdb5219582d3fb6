import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, readdirSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate as turnOfTheLoop } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { AppError } from '../../src/core/errors.ts'
import { silentLog } from '../../src/core/log.ts'
import { bundleFor } from '../../src/git/fetch.ts'
import { openIncoming } from '../../src/git/incoming.ts'
import { createRepositoryLocks } from '../../src/git/lock.ts'
import { recoverGit } from '../../src/git/recovery.ts'
import { changedFiles, diffPush } from '../../src/git/show.ts'
import { type GitWorld, makeGitWorld } from './world.ts'

let w: GitWorld
let tree: string
beforeEach(async () => {
  w = await makeGitWorld()
  tree = w.forge.git('rev-parse', `${w.base}^{tree}`)
})
afterEach(() => w.close())

const pushed = async (task: string, parent = w.base): Promise<string> => {
  const commit = w.forge.commit(tree, parent)
  await w.push(task, w.forge.honest(commit, parent), commit)
  return commit
}
const refs = (): string => w.git(w.repository, 'for-each-ref', '--format=%(refname) %(objectname)')
let warnings: string[]
const recover = (expected: Record<string, string>, signal?: AbortSignal) => {
  warnings = []
  return recoverGit(
    {
      ...w.intake,
      ...(signal === undefined ? {} : { signal }),
      warn: (line) => void warnings.push(line),
      expectedRefs: (_, project) => new Map(project === 'stack' ? Object.entries(expected) : []),
    },
    'acme',
  )
}

test('a fetch is a bundle of main and the named tasks, without what the peer has', async () => {
  const [one, two] = [await pushed('t-1'), await pushed('t-2')]
  const get = async (tasks: string[], have: string[]) => {
    await using incoming = await openIncoming(w.gitRoot)
    const { sizeBytes, tips, path } = await bundleFor(w.intake, { business: 'acme', project: 'stack', tasks, have, directory: incoming.path })
    const heads = sizeBytes === 0 ? '' : w.git(w.clone, 'bundle', 'list-heads', path)
    if (sizeBytes > 0) expect(statSync(path).size).toBe(sizeBytes)
    return { tips, heads }
  }
  expect(await get(['t-1', 't-none'], [w.base, 'f'.repeat(40)])).toEqual({
    tips: { 'refs/heads/main': w.base, 'refs/heads/t-1': one },
    heads: `${one} refs/heads/work/t-1`,
  })
  expect(await get(['t-1'], [one])).toEqual({ tips: { 'refs/heads/main': w.base, 'refs/heads/t-1': one }, heads: '' })
  expect((await get(['t-1', 't-2'], [])).heads.split('\n').sort()).toEqual(
    [`${w.base} refs/heads/main`, `${one} refs/heads/work/t-1`, `${two} refs/heads/work/t-2`].sort(),
  )
  expect(readdirSync(join(w.gitRoot, '.incoming'))).toEqual([])
})

test('a fetch by somebody who has every tip starts no sandbox; packed refs count as loose ones do', async () => {
  const [one, two] = [await pushed('t-1'), await pushed('t-2')]
  const get = async (have: string[]): Promise<number> => {
    await using incoming = await openIncoming(w.gitRoot)
    const { runs } = w.counters
    const { tips } = await bundleFor(w.intake, { business: 'acme', project: 'stack', tasks: ['t-1', 't-2'], have, directory: incoming.path })
    expect(tips).toEqual({ 'refs/heads/main': w.base, 'refs/heads/t-1': one, 'refs/heads/t-2': two })
    return w.counters.runs - runs
  }
  expect(await get([w.base, one, two])).toBe(0)
  w.git(w.repository, 'pack-refs', '--all')
  expect(await get([two, one, w.base])).toBe(0)
  expect(await get([w.base, one])).toBe(1) // the control
  w.git(w.repository, 'symbolic-ref', 'refs/heads/odd', 'refs/heads/main')
  expect(await get([w.base, one, two])).toBe(1) // git is asked about what is not plain
})

test('recovery removes locks, quarantines and half-made repositories', async () => {
  const one = await pushed('t-1')
  const left = [
    'acme/stack.git/refs/heads/main.lock',
    'acme/stack.git/packed-refs.lock',
    'acme/stack.git/objects/pack/tmp_pack_x',
    '.incoming/dead/bundle',
    'acme/.new-site.git/HEAD',
    '.main/acme/stack.git/refs/heads/main.lock',
    '.main/acme/stack.git/objects/pack/tmp_pack_x',
  ]
  for (const path of left) w.write(join(w.gitRoot, path), '')
  mkdirSync(join(w.gitRoot, 'acme', 'stack.git.lock'))
  const before = refs()
  await recover({ 'refs/heads/work/t-1': one })
  expect(left.filter((path) => existsSync(join(w.gitRoot, path)))).toEqual([])
  expect(readdirSync(join(w.gitRoot, 'acme'))).toEqual(['stack.git'])
  expect(refs()).toBe(before)
  await pushed('t-2') // the control: it works
})

test('recovery leaves a lock that somebody holds, and what is made under it; the repository is looked at once it is free', async () => {
  const one = await pushed('t-1')
  w.git(w.repository, 'update-ref', '-d', 'refs/heads/work/t-1')
  const theirs = createRepositoryLocks({ log: silentLog })
  const half = join(w.gitRoot, 'acme', '.new-stack.git')
  const expected = { 'refs/heads/work/t-1': one }
  await theirs.withLock(w.repository, { timeoutMs: 1000 }, async (held) => {
    w.write(join(half, 'HEAD'), '')
    await expect(recover(expected)).rejects.toMatchObject({ code: 'busy' })
    expect([existsSync(`${w.repository}.lock`), existsSync(half), held.aborted]).toEqual([true, true, false])
  })
  await recover(expected)
  expect([existsSync(half), refs()]).toEqual([false, `refs/heads/main ${w.base}\nrefs/heads/work/t-1 ${one}`])
}, 30_000)

test('recovery that waits for a repository ends when it is cancelled, and puts none aside', async () => {
  const theirs = createRepositoryLocks({ log: silentLog })
  const cancel = new AbortController()
  await theirs.withLock(w.repository, { timeoutMs: 1000 }, async () => {
    const recovering = expect(recover({}, cancel.signal)).rejects.toMatchObject({ code: 'interrupted' })
    await turnOfTheLoop()
    cancel.abort()
    await recovering
  })
  expect([readdirSync(join(w.gitRoot, 'acme')), warnings]).toEqual([['stack.git'], []])
})

test('recovery makes refs what the rows say', async () => {
  const one = await pushed('t-1')
  await pushed('t-1', one)
  await pushed('t-2')
  const lost = await pushed('t-3')
  w.git(w.repository, 'update-ref', '-d', 'refs/heads/work/t-3')
  w.git(w.repository, 'update-ref', 'refs/mosaic/incoming/root', one)
  const expected = { 'refs/heads/work/t-1': one, 'refs/heads/work/t-3': lost, 'refs/mosaic/approved/t-1': one, 'refs/heads/work/t-4': 'f'.repeat(40) }
  for (let round = 0; round < 2; round++) {
    await recover(expected)
    expect(refs().split('\n')).toEqual([
      `refs/heads/main ${w.base}`,
      `refs/heads/work/t-1 ${one}`,
      `refs/heads/work/t-3 ${lost}`,
      `refs/mosaic/approved/t-1 ${one}`,
    ])
  }
})

/** As a power cut leaves it: its HEAD has no bytes. */
const damage = (project: string): void => void w.write(join(w.gitRoot, 'acme', `${project}.git`, 'HEAD'), '')
const copyOf = (project: string): void => cpSync(w.repository, join(w.gitRoot, 'acme', `${project}.git`), { recursive: true })

test('a damaged repository without a push is moved aside; it keeps none of the others from recovery', async () => {
  copyOf('aaa')
  damage('aaa')
  const one = await pushed('t-1')
  w.git(w.repository, 'update-ref', '-d', 'refs/heads/work/t-1')
  await recover({ 'refs/heads/work/t-1': one })
  expect(refs()).toContain(`refs/heads/work/t-1 ${one}`)
  const [aside, ...rest] = readdirSync(join(w.gitRoot, 'acme')).sort()
  expect(aside).toMatch(/^\.broken-aaa-\d+\.git$/)
  expect(rest).toEqual(['stack.git'])
  expect(warnings).toEqual([expect.stringContaining(aside ?? '')])
  await recover({ 'refs/heads/work/t-1': one })
  expect(readdirSync(join(w.gitRoot, 'acme')).sort()).toEqual([aside, 'stack.git'])
})

test('a damaged repository that was pushed to stays where it is and is named', async () => {
  const one = await pushed('t-1')
  copyOf('zzz')
  w.write(join(w.gitRoot, 'acme', 'zzz.git', 'refs', 'heads', 'main.lock'), '')
  damage('stack')
  await recover({ 'refs/heads/work/t-1': one })
  expect(readdirSync(join(w.gitRoot, 'acme')).sort()).toEqual(['stack.git', 'zzz.git'])
  expect(warnings).toEqual([expect.stringContaining(w.repository)])
  expect(existsSync(join(w.gitRoot, 'acme', 'zzz.git', 'refs', 'heads', 'main.lock'))).toBe(false)
})

test('without a sandbox nothing is judged', async () => {
  const gone = new AppError('sandbox-unavailable', 'no sandbox')
  const deps = { ...w.intake, warn: () => undefined, expectedRefs: () => new Map<string, string>(), runHelper: () => Promise.reject(gone) }
  await expect(recoverGit(deps, 'acme')).rejects.toBe(gone)
  expect(existsSync(w.repository)).toBe(true)
})

test('a crash at each step of a push is put right by the rows', async () => {
  for (const point of ['push.objects', 'push.ref', 'push.row']) {
    const commit = w.forge.commit(tree, w.base)
    const failpoint = (name: string): void => {
      if (name === point) throw new Error(`killed at ${name}`)
    }
    await expect(w.push('t-9', w.forge.honest(commit, w.base), commit, { intake: { failpoint } })).rejects.toThrow(point)
    await recover({})
    expect(refs()).toBe(`refs/heads/main ${w.base}`)
  }
})

test('a lock held by another process is busy in time, and free afterwards', async () => {
  const [mine, theirs] = [createRepositoryLocks({ log: silentLog }), createRepositoryLocks({ log: silentLog })]
  let release: () => void = () => undefined
  const held = new Promise<void>((resolve) => (release = resolve))
  const first = theirs.withLock(w.repository, { timeoutMs: 1000 }, () => held)
  await expect(mine.withLock(w.repository, { timeoutMs: 300 }, () => Promise.resolve('in'))).rejects.toMatchObject({ code: 'busy' })
  await expect(theirs.withLock(w.repository, { timeoutMs: 300 }, () => Promise.resolve('in'))).rejects.toMatchObject({ code: 'busy' })
  const second = theirs.withLock(w.repository, { timeoutMs: 5000 }, () => Promise.resolve('second'))
  release()
  await first
  expect(await second).toBe('second')
  expect(await mine.withLock(w.repository, { timeoutMs: 300 }, () => Promise.resolve('in'))).toBe('in')
})

test('the wait for a lock that another process holds, or an earlier of ours, ends when it is cancelled; nothing is run then', async () => {
  const [mine, theirs] = [createRepositoryLocks({ log: silentLog }), createRepositoryLocks({ log: silentLog })]
  let runs = 0
  const run = (signal: AbortSignal): Promise<number> => mine.withLock(w.repository, { timeoutMs: 3000, signal }, () => Promise.resolve(++runs))
  const cancel = new AbortController()
  await theirs.withLock(w.repository, { timeoutMs: 1000 }, async () => {
    const asked = Promise.allSettled([run(cancel.signal), run(cancel.signal), run(AbortSignal.abort())])
    await turnOfTheLoop() // by now the first asks for the lock, and the second for its turn
    cancel.abort()
    for (const one of await asked) expect(one).toMatchObject({ status: 'rejected', reason: { code: 'interrupted' } })
  })
  await expect(run(cancel.signal)).rejects.toMatchObject({ code: 'interrupted' })
  expect(runs).toBe(0)
  expect(await run(new AbortController().signal)).toBe(1) // the control
})

test("a diff shows an agent's text and runs none of its drivers; acting files are named", async () => {
  const blob = w.forge.object('blob', 'evil\n')
  const commit = w.forge.commit(
    w.forge.tree([
      { mode: '100644', name: '.envrc', oid: blob },
      { mode: '100644', name: 'file.txt', oid: blob },
    ]),
    w.base,
  )
  await w.push('t-1', w.forge.honest(commit, w.base), commit)
  const marker = w.path('marker')
  w.git(w.repository, 'config', 'diff.external', `touch ${marker}`)
  expect(await diffPush(w.intake, w.repository, commit)).toMatch(/^\+evil$/m)
  expect(await changedFiles(w.intake, w.repository, commit)).toEqual({ files: ['.envrc', 'file.txt'], acting: ['.envrc'], complete: true })
  expect(existsSync(marker)).toBe(false)
})

const ACTING = [
  '.envrc',
  '.github/workflows/ci.yml',
  '.gitlab-ci.yml',
  '.husky/pre-commit',
  '.vscode/tasks.json',
  'a/.envrc',
  'package.json',
  'pkg/package.json',
]
const HARMLESS = ['README.md', 'docs/package.json.md', 'github/workflows/x', 'src/husky.ts']

/** A commit in the working repository that adds these paths. */
function commitOf(w: GitWorld, paths: readonly string[], mode = '100644'): string {
  const blob = w.forge.object('blob', 'x')
  const index = { GIT_INDEX_FILE: w.path('index') }
  rmSync(index.GIT_INDEX_FILE, { force: true })
  const run = (args: readonly string[], input = ''): string =>
    execFileSync('git', args, { cwd: w.clone, env: { ...process.env, ...index }, input })
      .toString()
      .trim()
  run(['update-index', '--index-info'], paths.map((path) => `${mode} ${blob}\t${path}\n`).join(''))
  const commit = w.forge.commit(run(['write-tree']), w.base)
  w.git(w.clone, 'push', '-q', '-f', w.repository, `${commit}:refs/heads/work/t-shown`)
  return commit
}

test('files that act by themselves are named, wherever they are; others are not, and a link in the place of a directory is', async () => {
  const { acting, complete } = await changedFiles(w.intake, w.repository, commitOf(w, [...ACTING, ...HARMLESS]))
  expect([acting, complete]).toEqual([ACTING, true])
  expect((await changedFiles(w.intake, w.repository, commitOf(w, ['.husky', 'husky'], '120000'))).acting).toEqual(['.husky'])
})

test('files that act by themselves are named behind any number of others; a list that is not whole says so, and holds whole paths alone', async () => {
  const long = (n: number): string => `!${String(n).padStart(200, '0')}/${'x'.repeat(200)}`
  const many = Array.from({ length: 11_000 }, (_, n) => long(n))
  const { files, acting, complete } = await changedFiles(w.intake, w.repository, commitOf(w, [...many, ...ACTING]))
  expect([acting, complete]).toEqual([ACTING, false])
  expect(files.length).toBeGreaterThan(10_000)
  expect(files.every((path) => many.includes(path) || path === 'file.txt')).toBe(true)
})

test('a crowd of files that act by themselves is no whole list either', async () => {
  const crowd = Array.from({ length: 11_000 }, (_, n) => `${String(n).padStart(200, '0')}/${'x'.repeat(200)}/.envrc`)
  const { acting, complete } = await changedFiles(w.intake, w.repository, commitOf(w, crowd))
  expect(complete).toBe(false)
  expect(acting.every((path) => path.endsWith('/.envrc'))).toBe(true)
})
