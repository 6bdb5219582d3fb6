import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openAppend, openPlain, readPlain, writeDurably, writeNew } from '../../src/envroot/files.ts'
import { at, leadsTo, pinDataRoot, walkTo } from '../../src/envroot/pin.ts'
import { openRunDirectory, openRunDirectoryOf, removeRunDirectory } from '../../src/envroot/rundir.ts'
import { measureTree } from '../../src/envroot/size.ts'
import { codeOf } from '../../src/core/errors.ts'
import { openWorld, RUN, snapshot } from './world.ts'

const code = (call: () => unknown): unknown => {
  try {
    call()
  } catch (error) {
    return (error as NodeJS.ErrnoException).code
  }
  return null
}

test('a data root is pinned through a link, and refused unless it is a 0700 directory of ours', async () => {
  const w = await openWorld()
  const path = join(w.root, 'd')
  fs.symlinkSync(path, join(w.root, 'l'))
  const pinned = await pinDataRoot(join(w.root, 'l'))
  expect([pinned.path, pinned.identity]).toEqual([path, w.dataRoot.identity])
  pinned.close()
  fs.chmodSync(path, 0o750)
  expect(codeOf(await pinDataRoot(path).catch((error: unknown) => error))).toBe('data-root-unsafe')
  fs.chmodSync(path, 0o700)
  w.write(join(w.root, 'file'), '')
  for (const other of [join(w.root, 'file'), join(w.root, 'absent'), '/'])
    expect(codeOf(await pinDataRoot(other).catch((error: unknown) => error))).toBe('data-root-unsafe')
})

test('a pinned directory opens real directories one component at a time, and leads to what it was', async () => {
  const w = await openWorld()
  const dir = w.dataRoot.child('a', { create: true })
  expect([dir.created, fs.statSync(dir.path).mode & 0o777]).toEqual([true, 0o700])
  const again = w.dataRoot.child('a', { create: true })
  expect([again.created, again.identity]).toEqual([false, dir.identity])
  again.close()
  fs.symlinkSync(dir.path, join(w.root, 'd', 'link'))
  fs.symlinkSync('/nowhere', join(w.root, 'd', 'dangling'))
  execFileSync('mkfifo', [join(w.root, 'd', 'fifo')])
  for (const name of ['link', 'dangling', 'fifo']) for (const create of [true, false]) expect(code(() => w.dataRoot.child(name, { create }))).toBe('ENOTDIR')
  for (const name of ['', '.', '..', 'a/b', '../d', 'a\0', 'x'.repeat(256)]) expect(() => at(w.dataRoot, name)).toThrow('not one path component')
  fs.renameSync(dir.path, join(w.root, 'moved'))
  writeNew(dir, 'file', 'x')
  expect(fs.readFileSync(join(w.root, 'moved', 'file'), 'utf8')).toBe('x')
  expect(leadsTo(w.dataRoot, ['a'], dir.identity)).toBe(false)
  dir.close()
  dir.close()
  expect(() => dir.fd).toThrow('after it was closed')
})

test('a walk closes what lies between, also when it fails', async () => {
  const w = await openWorld()
  const open = (): number => fs.readdirSync('/proc/self/fd').length
  const before = open()
  const made: number[] = []
  walkTo(w.dataRoot, ['a', 'a', 'b'], { create: true, made: (depth) => made.push(depth) }).close()
  expect(made).toEqual([1, 2, 3])
  expect(code(() => walkTo(w.dataRoot, ['a', 'a', 'nope']))).toBe('ENOENT')
  expect(open()).toBe(before)
})

test('reading what an agent may have left: a plain file with one name, within the limit, or why not', { timeout: 10_000 }, async () => {
  const w = await openWorld()
  const dir = w.dataRoot.child('a', { create: true })
  const path = (name: string): string => join(dir.path, name)
  fs.writeFileSync(path('plain'), 'hello')
  fs.symlinkSync('/etc/shadow', path('link'))
  execFileSync('mkfifo', [path('fifo')])
  fs.mkdirSync(path('dir'))
  fs.writeFileSync(path('one'), '')
  fs.linkSync(path('one'), path('two'))
  const why = (name: string): string => {
    const read = readPlain(dir, name, 5)
    return read.kind === 'unsafe' ? read.why : read.kind
  }
  expect(['plain', 'absent', 'link', 'fifo', 'dir', 'two'].map(why)).toEqual(['read', 'absent', 'is a link', 'is a FIFO', 'is a directory', 'is a hard link'])
  fs.writeFileSync(path('plain'), 'hello!')
  expect(why('plain')).toMatch(/^is over/)
  expect(openPlain(dir, 'plain')).toMatchObject({ kind: 'open', sizeBytes: 6 })
  for (const name of ['link', 'fifo', 'dir', 'two']) expect(() => openAppend(dir, name)).toThrow()
  dir.close()
})

test('a durable write replaces the file and leaves no temporary; it writes through no link', async () => {
  const w = await openWorld()
  const victim = w.write(join(w.root, 'victim'), 'untouched')
  fs.symlinkSync(victim, join(w.root, 'd', 'file'))
  fs.symlinkSync(victim, join(w.root, 'd', 'file.new'))
  writeDurably(w.dataRoot, 'file', 'new')
  expect(fs.readdirSync(join(w.root, 'd'))).toEqual(['file'])
  expect([fs.readFileSync(join(w.root, 'd', 'file'), 'utf8'), fs.readFileSync(victim, 'utf8')]).toEqual(['new', 'untouched'])
  expect(() => {
    writeNew(w.dataRoot, 'file', 'x')
  }).toThrow('EEXIST')
})

test('the size of a tree: no link followed, sparse and hard-linked files at what they cost, any bytes in names', async () => {
  const w = await openWorld()
  const dir = w.dataRoot.child('a', { create: true })
  expect(await measureTree(dir)).toEqual({ sizeBytes: 0, complete: true })
  const weird = Buffer.concat([Buffer.from(`${dir.path}/`), Buffer.from([0xff, 0x0a, 0x2f, 0x66])])
  fs.mkdirSync(weird.subarray(0, -2))
  fs.writeFileSync(weird, Buffer.alloc(100_000, 1))
  fs.linkSync(weird, join(dir.path, 'second name'))
  fs.truncateSync(w.write(join(dir.path, 'sparse'), ''), 2 ** 40)
  fs.symlinkSync('/usr', join(dir.path, 'link'))
  execFileSync('mkfifo', [join(dir.path, 'fifo')])
  const { sizeBytes, complete } = await measureTree(dir)
  expect(complete).toBe(true)
  expect(sizeBytes).toBeGreaterThanOrEqual(100_000)
  expect(sizeBytes).toBeLessThan(200_000)
  fs.chmodSync(weird.subarray(0, -2), 0)
  expect((await measureTree(dir)).complete).toBe(false)
  dir.close()
})

test('a tree without end is measured up to a limit', async () => {
  const w = await openWorld()
  const dir = w.dataRoot.child('a', { create: true })
  execFileSync('python3', ['-c', 'import os\nfor _ in range(1500):\n os.mkdir("deeper-and-deeper"); os.chdir("deeper-and-deeper")'], { cwd: dir.path })
  expect((await measureTree(dir)).complete).toBe(false)
  dir.close()
})

test('a run directory: 0700 with bundle and home, files of ours, an appended log; undo removes it all', async () => {
  const w = await openWorld()
  const run = openRunDirectory(w.deps, { business: 'acme', run: RUN })
  const path = join(w.root, 'd', 'launches', 'acme', RUN)
  expect(run.dir.path).toBe(path)
  run.write(run.dir, 'session.json', '{}')
  run.write(run.bundle, 'runner.mjs', 'code', 0o400)
  run.write(run.home.child('.config', { create: true }), 'settings', 'x')
  for (const text of ['one\n', 'two\n']) {
    const fd = run.openRunnerLog()
    fs.writeSync(fd, text)
    fs.closeSync(fd)
  }
  expect(fs.readFileSync(join(path, 'runner.log'), 'utf8')).toBe('one\ntwo\n')
  expect(
    ['', 'bundle', 'home', 'runner.log', 'session.json', 'bundle/runner.mjs'].map((name) => (fs.statSync(join(path, name)).mode & 0o777).toString(8)),
  ).toEqual(['700', '700', '700', '600', '600', '400'])
  expect(() => {
    run.write(run.dir, 'session.json', 'again')
  }).toThrow('EEXIST')
  expect(() => openRunDirectory(w.deps, { business: 'acme', run: RUN })).toThrow('is there already')
  fs.symlinkSync('/etc', join(path, 'home', 'link'))
  run.undo()
  expect(fs.readdirSync(join(w.root, 'd', 'launches', 'acme'))).toEqual([])
  expect(fs.existsSync('/etc/passwd')).toBe(true)
  run.close()
  removeRunDirectory(w.deps, 'acme', RUN)
  expect(openRunDirectoryOf(w.deps, 'acme', RUN)).toBeNull()
})

test('a run directory is made behind no link', async () => {
  const w = await openWorld()
  fs.mkdirSync(join(w.root, 'outside'))
  fs.symlinkSync(join(w.root, 'outside'), join(w.root, 'd', 'launches'))
  const before = snapshot(w.root)
  expect(() => openRunDirectory(w.deps, { business: 'acme', run: RUN })).toThrow('ENOTDIR')
  expect(snapshot(w.root)).toEqual(before)
})

test('a run directory that cannot be filled is not left', async () => {
  const w = await openWorld()
  openRunDirectory(w.deps, { business: 'acme', run: RUN }).undo()
  const usual = process.umask(0o300)
  try {
    expect(() => openRunDirectory(w.deps, { business: 'acme', run: RUN })).toThrow('EACCES')
  } finally {
    process.umask(usual)
  }
  expect(fs.readdirSync(join(w.root, 'd', 'launches', 'acme'))).toEqual([])
  openRunDirectory(w.deps, { business: 'acme', run: RUN }).undo()
})
