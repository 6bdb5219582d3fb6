import { spawn } from 'node:child_process'
import { chmodSync, lstatSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { prepareWorkspace, type PreparedProject, type PrepareInput, unsavedWork } from '../../src/workspace/prepare.ts'
import { syncProject } from '../../src/workspace/sync.ts'
import { exists, fifo, makeWorld, snapshot, type World } from './world.ts'

let w: World
beforeEach(async () => {
  w = await makeWorld()
})
afterEach(() => w.close())

const prepare = async (more: Partial<PrepareInput> = {}): Promise<PreparedProject | undefined> => {
  const input = { business: 'acme', projects: [{ id: 'stack', root: w.project, branch: 'main' }], workspace: w.workspace, deadlineMs: 20_000, ...more }
  return (await prepareWorkspace(w.deps, input))[0]
}
const unsaved = () => unsavedWork(w.deps, { business: 'acme', workspace: w.workspace })
const left = (): string[] => readdirSync(w.workspace.path)

test('clones the branch of the root, without hard links, and writes nothing to the root', async () => {
  w.write(join(w.project, '.env'), 'SECRET')
  const before = snapshot(w.project, '', true)
  expect(await prepare()).toEqual({ id: 'stack', path: w.clone, branch: 'main', kept: null, mainDiverged: false })
  expect(snapshot(w.project, '', true)).toEqual(before)
  expect(w.git(w.clone, 'rev-parse', 'HEAD')).toBe(w.git(w.project, 'rev-parse', 'main'))
  expect(w.git(w.clone, 'symbolic-ref', '--short', 'HEAD')).toBe('main')
  expect(w.git(w.clone, 'config', '--get-all', 'remote.origin.url')).toBe(w.project)
  expect(w.git(w.clone, 'config', '--get-all', 'remote.mosaic.url')).toBe('mosaic::stack')
  expect(w.git(w.clone, 'status', '--porcelain')).toBe('')
  expect(w.git(w.clone, 'fsck', '--full')).toBe('')
  expect(left()).toEqual(['stack'])
  expect(readdirSync(w.clone).sort()).toEqual(['.git', 'file.txt'])
  expect(w.git(w.repository, 'for-each-ref', '--format=%(refname)')).toBe('refs/heads/main')
})

test('only main comes over: no work ref, no object of one', async () => {
  await prepare()
  const other = w.git(w.repository, 'commit-tree', '-p', 'main', '-m', 'other', 'main^{tree}')
  w.git(w.repository, 'update-ref', 'refs/heads/work/t-1', other)
  rmSync(w.clone, { recursive: true })
  await prepare()
  expect(w.git(w.clone, 'for-each-ref', '--format=%(refname)').split('\n')).toEqual(['refs/heads/main', 'refs/remotes/origin/main'])
  expect(() => w.git(w.clone, 'cat-file', '-e', other)).toThrow()
  expect(w.git(w.repository, 'cat-file', '-t', other)).toBe('commit') // the control
})

test('a clean clone that is behind is fast-forwarded; a current one stays', async () => {
  await prepare()
  const two = w.commit(w.project, 'two')
  expect(await prepare()).toMatchObject({ kept: null })
  expect(w.git(w.clone, 'rev-parse', 'HEAD')).toBe(two)
  expect(w.git(w.clone, 'status', '--porcelain')).toBe('')
  const before = snapshot(w.clone)
  expect(await prepare()).toMatchObject({ kept: null })
  expect(snapshot(w.clone)).toEqual(before)
})

test('another branch than main is cloned under its own name', async () => {
  w.git(w.project, 'checkout', '-q', '-b', 'release/1')
  const tip = w.commit(w.project, 'release')
  const projects = [{ id: 'stack', root: w.project, branch: 'release/1' }]
  expect(await prepare({ projects })).toMatchObject({ branch: 'release/1', kept: null })
  expect(w.git(w.clone, 'symbolic-ref', '--short', 'HEAD')).toBe('release/1')
  expect(w.git(w.clone, 'rev-parse', 'HEAD')).toBe(tip)
  expect(w.git(w.repository, 'rev-parse', 'refs/heads/main')).toBe(tip)
})

test('a linked worktree as root is resolved to its common directory', async () => {
  const tree = w.path('tree')
  w.git(w.project, 'worktree', 'add', '-q', '-b', 'side', tree)
  const tip = w.commit(tree, 'side')
  const before = snapshot(w.project, '', true)
  await prepare({ projects: [{ id: 'stack', root: tree, branch: 'side' }] })
  expect(w.git(w.clone, 'rev-parse', 'HEAD')).toBe(tip)
  expect(snapshot(w.project, '', true)).toEqual(before)
})

const keptCases: readonly (readonly [string, () => void])[] = [
  ['unreadable', () => w.write(join(w.clone, '.git', 'config'), '[core\n')],
  ['locked', () => w.write(join(w.clone, '.git', 'index.lock'), '')],
  ['in-progress', () => w.write(join(w.clone, '.git', 'MERGE_HEAD'), `${w.git(w.clone, 'rev-parse', 'HEAD')}\n`)],
  ['detached', () => void w.git(w.clone, 'checkout', '-q', '--detach')],
  ['branch', () => void w.git(w.clone, 'checkout', '-q', '-b', 'other')],
  ['dirty', () => w.write(join(w.clone, 'notes.txt'), 'mine')],
  ['dirty', () => w.write(join(w.clone, 'file.txt'), 'changed')],
  ['diverged', () => w.commit(w.clone, 'mine', 'mine.txt')],
]
for (const [n, [reason, change]] of keptCases.entries()) {
  test(`a clone is kept as it is: ${reason} (${String(n)})`, async () => {
    await prepare()
    change()
    w.commit(w.project, 'two')
    const before = snapshot(w.clone)
    expect(await prepare()).toMatchObject({ kept: reason, mainDiverged: false })
    expect(snapshot(w.clone)).toEqual(before)
  })
}

test('a clone that is ahead is kept; the first reason that holds is the one told', async () => {
  await prepare()
  w.commit(w.clone, 'mine', 'mine.txt')
  expect(await prepare()).toMatchObject({ kept: 'ahead' })
  w.write(join(w.clone, 'notes.txt'), 'mine')
  expect(await prepare()).toMatchObject({ kept: 'dirty' })
  w.git(w.clone, 'checkout', '-q', '--detach')
  expect(await prepare()).toMatchObject({ kept: 'detached' })
  w.write(join(w.clone, '.git', 'index.lock'), '')
  expect(await prepare()).toMatchObject({ kept: 'locked' })
})

test('an ignored file in the way of main keeps the clone', async () => {
  await prepare()
  w.write(join(w.clone, '.git', 'info', 'exclude'), 'built.txt\n')
  w.write(join(w.clone, 'built.txt'), 'precious')
  w.commit(w.project, 'theirs', 'built.txt')
  expect(await prepare()).toMatchObject({ kept: 'dirty' })
  expect(readFileSync(join(w.clone, 'built.txt'), 'utf8')).toBe('precious')
})

for (const name of ['HEAD', 'index', '.gitignore', 'refs/heads/main', 'packed-refs']) {
  test(`a FIFO as ${name} keeps the clone as hung, at once`, async () => {
    await prepare()
    const path = name === '.gitignore' ? join(w.clone, name) : join(w.clone, '.git', name)
    rmSync(path, { force: true })
    fifo(path)
    const started = performance.now()
    expect((await prepare({ deadlineMs: 20_000 }))?.kept).toBe('hung')
    expect(await unsaved()).toEqual([{ project: 'stack', reason: 'hung' }])
    expect(performance.now() - started).toBeLessThan(5000)
    expect(lstatSync(path).isFIFO()).toBe(true)
    rmSync(path)
    if (name === 'HEAD') w.write(path, 'ref: refs/heads/main\n')
    if (name === 'refs/heads/main') w.write(path, `${w.git(w.project, 'rev-parse', 'main')}\n`)
    if (name === 'index') w.git(w.clone, 'reset', '-q', '--hard')
    expect(await prepare()).toMatchObject({ kept: null })
  })
}

test('a FIFO deeper in the tree costs half of the time and keeps the clone as hung', async () => {
  await prepare()
  w.write(join(w.clone, 'deep', 'file.txt'), 'mine')
  fifo(join(w.clone, 'deep', '.gitignore'))
  const started = performance.now()
  expect((await prepare({ deadlineMs: 2000 }))?.kept).toBe('hung')
  expect(performance.now() - started).toBeGreaterThan(900)
})

for (const name of ['HEAD', 'refs/heads/main', 'config', 'packed-refs', 'shallow']) {
  test(`a FIFO as ${name} of the root is prepare-timeout or a refusal in time; the next look works at once`, async () => {
    const path = join(w.project, '.git', name)
    const aside = w.path('aside')
    if (exists(path)) renameSync(path, aside)
    fifo(path)
    const started = performance.now()
    await expect(prepare({ deadlineMs: 1500 })).rejects.toMatchObject({ code: name === 'shallow' ? 'checkout-failed' : 'prepare-timeout' })
    expect(performance.now() - started).toBeLessThan(4000)
    expect(left()).toEqual([])
    expect(readdirSync(join(w.gitRoot, 'acme'))).toEqual([])
    rmSync(path)
    if (exists(aside)) renameSync(aside, path)
    expect(await prepare()).toMatchObject({ kept: null })
  })
}

const pointer = (text: string): void => {
  rmSync(join(w.project, '.git'), { recursive: true })
  w.write(join(w.project, '.git'), text)
}
const emptied = (dir: string): void => {
  rmSync(dir, { recursive: true })
  mkdirSync(dir)
}
const shallow = (): void => {
  w.commit(w.project, 'two')
  renameSync(w.project, w.path('full'))
  w.git(w.root, 'clone', '-q', '--depth', '1', `file://${w.path('full')}`, w.project)
}
const shallowUnmarked = (): void => {
  shallow()
  rmSync(join(w.project, '.git', 'shallow'))
}
const borrowed = (): void => {
  renameSync(w.project, w.path('full'))
  w.git(w.root, 'clone', '-q', '--shared', w.path('full'), w.project)
}
const unreadableRoots: readonly (readonly [string, () => unknown, RegExp])[] = [
  ['no .git', () => renameSync(join(w.project, '.git'), w.path('away')), /\.git is missing/],
  ['a .git that is text', () => pointer('hello'), /names none/],
  ['a worktree that points nowhere', () => pointer('gitdir: /nowhere\n'), /nowhere/],
  ['an empty .git', () => emptied(join(w.project, '.git')), /no branch main/],
  ['no such branch', () => w.git(w.project, 'branch', '-m', 'trunk'), /no branch main/],
  ['no such folder', () => renameSync(w.project, w.path('gone')), /\.git is missing/],
  ['missing objects', () => emptied(join(w.project, '.git', 'objects')), /./],
  ['a shallow clone', shallow, /shallow/],
  ['a shallow clone whose mark is gone', shallowUnmarked, /./],
  ['alternates outside', borrowed, /borrows objects from/],
]
for (const [what, change, words] of unreadableRoots) {
  test(`a root that cannot be read (${what}) is checkout-failed, and nothing is half made`, async () => {
    change()
    const refusal = await prepare().catch((error: unknown) => error)
    expect(refusal).toMatchObject({ code: 'checkout-failed', message: expect.stringMatching(words) as string })
    expect(String(refusal)).toContain(`stack: the root ${w.project} can't be read: `)
    expect(left()).toEqual([])
    expect(readdirSync(join(w.gitRoot)).flatMap((name) => readdirSync(join(w.gitRoot, name)))).toEqual([])
  })
}

test('a second project that cannot be read leaves no clone of the first', async () => {
  const projects = [
    { id: 'stack', root: w.project, branch: 'main' },
    { id: 'site', root: w.path('nowhere'), branch: 'main' },
  ]
  await expect(prepare({ projects })).rejects.toMatchObject({ code: 'checkout-failed' })
  expect(left()).toEqual([])
})

test('a clone that fails in the middle is undone with those made before it', async () => {
  await prepare()
  const other = { id: 'site', root: w.project, branch: 'main' }
  await syncProject(w.deps, 'acme', other, { timeoutMs: 10_000 })
  rmSync(join(w.gitRoot, 'acme', 'site.git', 'objects'), { recursive: true })
  mkdirSync(join(w.gitRoot, 'acme', 'site.git', 'objects'))
  rmSync(w.clone, { recursive: true })
  await expect(prepare({ projects: [{ id: 'stack', root: w.project, branch: 'main' }, other] })).rejects.toMatchObject({ code: 'checkout-failed' })
  expect(left()).toEqual([])
})

test('a clone whose folder is a link is env-root-unsafe', async () => {
  mkdirSync(w.path('elsewhere'))
  symlinkSync(w.path('elsewhere'), w.clone)
  await expect(prepare()).rejects.toMatchObject({ code: 'env-root-unsafe', message: 'workspace/stack is a link' })
  expect(readdirSync(w.path('elsewhere'))).toEqual([])
})

test('a rewritten root leaves main, says so, and moves it when forced', async () => {
  await prepare()
  const old = w.git(w.repository, 'rev-parse', 'main')
  w.git(w.project, 'commit', '-q', '--amend', '-m', 'rewritten')
  expect(await prepare()).toMatchObject({ kept: null, mainDiverged: true })
  expect(w.git(w.repository, 'rev-parse', 'main')).toBe(old)
  expect(w.git(w.repository, 'for-each-ref', '--format=%(refname)')).toBe('refs/heads/main')
  const forced = await syncProject(w.deps, 'acme', { id: 'stack', root: w.project, branch: 'main' }, { timeoutMs: 10_000, force: true })
  expect(forced).toEqual({ tip: w.git(w.project, 'rev-parse', 'main'), mainDiverged: false })
  expect(await prepare()).toMatchObject({ kept: 'diverged', mainDiverged: false })
})

test('a cancelled preparation ends at once and leaves nothing', async () => {
  const stop = new AbortController()
  const path = join(w.project, '.git', 'refs', 'heads', 'main')
  rmSync(path)
  fifo(path)
  const run = prepare({ signal: stop.signal })
  const started = performance.now()
  setImmediate(() => stop.abort())
  await expect(run).rejects.toMatchObject({ code: 'interrupted' })
  expect(performance.now() - started).toBeLessThan(5000)
  expect(left()).toEqual([])
})

test('many launches at once share one repository', async () => {
  const results = await Promise.all(
    ['a', 'b', 'c'].map((id) =>
      syncProject(w.deps, 'acme', { id: 'stack', root: w.project, branch: 'main' }, { timeoutMs: 20_000 }).then(({ tip }) => `${id} ${tip}`),
    ),
  )
  const tip = w.git(w.project, 'rev-parse', 'main')
  expect(results).toEqual(['a', 'b', 'c'].map((id) => `${id} ${tip}`))
  expect(readdirSync(join(w.gitRoot, 'acme'))).toEqual(['stack.git'])
})

test('a planted filter and a planted fsmonitor find nothing of the root, and the filter does run', async () => {
  const secret = w.write(join(w.project, '.env'), 'STAND-IN-SECRET')
  w.write(join(w.project, '.gitattributes'), '*.txt filter=spy\n')
  w.git(w.project, 'add', '.gitattributes')
  w.git(w.project, 'commit', '-q', '-m', 'attributes')
  await prepare()
  const [spy, monitor] = [join(w.workspace.path, 'spy'), join(w.workspace.path, 'monitor')]
  w.git(w.clone, 'config', 'filter.spy.clean', `sh -c 'cat; { echo ran; cat ${secret}; ls ${w.project}; env; } >> ${spy} 2>&1'`)
  w.git(w.clone, 'config', 'filter.spy.smudge', `sh -c 'cat; { echo ran; cat ${secret}; } >> ${spy} 2>&1'`)
  w.git(w.clone, 'config', 'core.fsmonitor', `sh -c 'cat ${secret} > ${monitor}'`)
  w.commit(w.project, 'two')
  w.write(join(w.clone, 'file.txt'), 'one\n')
  await prepare()
  const seen = readFileSync(spy, 'utf8')
  expect(seen).toContain('ran') // the control: what is planted runs, in the sandbox
  expect(seen).toContain('No such file')
  expect(seen).not.toContain('STAND-IN-SECRET')
  expect(exists(monitor)).toBe(false)
})

test('unsaved work is what is dirty or unpushed; a pushed commit is saved', async () => {
  expect(await unsaved()).toEqual([])
  await prepare()
  expect(await unsaved()).toEqual([])
  const note = w.write(join(w.clone, 'notes.txt'), 'mine')
  expect(await unsaved()).toEqual([{ project: 'stack', reason: 'dirty' }])
  rmSync(note)
  w.git(w.clone, 'checkout', '-q', '-b', 'side')
  const commit = w.commit(w.clone, 'mine', 'mine.txt')
  w.git(w.clone, 'checkout', '-q', 'main')
  expect(await unsaved()).toEqual([{ project: 'stack', reason: 'unpushed' }])
  w.git(w.repository, 'fetch', '-q', w.clone, `${commit}:refs/heads/work/t-1`)
  expect(await unsaved()).toEqual([])
  w.write(join(w.clone, 'file.txt'), 'stashed')
  w.git(w.clone, 'stash', '-q')
  expect(await unsaved()).toEqual([{ project: 'stack', reason: 'unpushed' }])
  w.write(join(w.clone, '.git', 'HEAD'), 'garbage')
  expect(await unsaved()).toEqual([{ project: 'stack', reason: 'unreadable' }])
})

/** A filter that git runs while it looks at a clone, as whoever may write there can plant it; what it did, or undefined when it did not run. */
function plantFilter(script: string): () => string | undefined {
  const out = join(w.workspace.path, 'out')
  const program = w.write(join(w.workspace.path, 'filter'), `#!/bin/sh\n{ ${script}; echo ran; } >${out} 2>&1\ncat\n`)
  chmodSync(program, 0o755)
  w.git(w.clone, 'config', 'filter.x.clean', program)
  w.write(join(w.clone, '.gitattributes'), '*.txt filter=x\n')
  w.write(join(w.clone, 'file.txt'), 'eno\n') // as long as before: git has to compare
  return () => (exists(out) ? readFileSync(out, 'utf8') : undefined)
}

test("a filter in a clone sees main, and no task's work, whatever is done with the workspace", async () => {
  await prepare()
  w.git(w.root, 'clone', '-q', w.repository, w.path('theirs'))
  w.commit(w.path('theirs'), 'secret of t-1', 's.txt')
  w.git(w.path('theirs'), 'push', '-q', 'origin', 'HEAD:refs/heads/work/t-1')
  expect(w.git(w.repository, 'cat-file', '-p', 'refs/heads/work/t-1:s.txt')).toBe('secret of t-1') // the control
  const show = (repository: string, what: string): string => `git --git-dir=${repository} -c safe.directory='*' cat-file -p ${what}`
  const store = join(w.gitRoot, '.main', 'acme', 'stack.git')
  const oid = w.git(w.repository, 'rev-parse', 'refs/heads/work/t-1:s.txt')
  const looks = [show(w.repository, 'refs/heads/work/t-1:s.txt'), show(store, oid), show(store, 'main:file.txt')]
  const seen = plantFilter(looks.join('; '))
  w.commit(w.project, 'two', 'two.txt')
  expect(await prepare()).toMatchObject({ kept: 'dirty' })
  expect(seen()).toMatch(/one\nran\n$/) // the control: it ran, and read main
  expect(seen()).not.toContain('secret')
  expect(w.git(store, 'rev-parse', 'main')).toBe(w.git(w.project, 'rev-parse', 'main'))
  expect(w.git(store, 'for-each-ref', '--format=%(refname)')).toBe('refs/heads/main')
})

test('a search for unsaved work shows a filter no repository: a FIFO leads out of what is read-only', async () => {
  await prepare()
  w.git(w.repository, 'update-ref', 'refs/heads/work/t-1', 'refs/heads/main')
  const pipe = join(w.workspace.path, 'pipe')
  fifo(pipe)
  const lines = w.path('lines')
  const reader = spawn('/bin/sh', ['-c', `exec cat <>${pipe} >${lines}`], { stdio: 'ignore' })
  try {
    const repositories = [w.repository, join(w.gitRoot, '.main', 'acme', 'stack.git')]
    plantFilter(`{ ls -d ${repositories.join(' ')}; echo ran; } >${pipe} 2>&1`)
    rmSync(join(w.workspace.path, 'out'), { force: true })
    const program = join(w.workspace.path, 'filter')
    w.write(program, readFileSync(program, 'utf8').replace(`>${join(w.workspace.path, 'out')} 2>&1`, ''))
    await unsaved()
    await expect.poll(() => (exists(lines) ? readFileSync(lines, 'utf8') : '')).toContain('ran')
    expect(readFileSync(lines, 'utf8')).not.toMatch(/^\/.*git$/m)
  } finally {
    reader.kill('SIGKILL')
  }
})

test('the copy of main is made anew where it is missing or broken', async () => {
  let more = 0
  const store = join(w.gitRoot, '.main', 'acme', 'stack.git')
  for (const harm of [
    () => rmSync(store, { recursive: true }),
    () => w.write(join(store, 'HEAD'), 'nonsense'),
    () => rmSync(join(store, 'objects'), { recursive: true }),
  ]) {
    await prepare()
    harm()
    rmSync(w.clone, { recursive: true })
    w.commit(w.project, `more ${String(more++)}`)
    expect(await prepare()).toMatchObject({ kept: null })
    expect(w.git(store, 'fsck')).toBe('')
  }
})
