import { spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { collectTree } from '../../src/backup/collect.ts'
import { extractArchive } from '../../src/backup/extract.ts'
import { toManifest } from '../../src/backup/manifest.ts'
import { parseHeader, parseRecords, toHeader } from '../../src/backup/tar.ts'
import { verifyArchive } from '../../src/backup/verify.ts'
import { openArchive } from '../../src/backup/write.ts'
import { AppError } from '../../src/core/errors.ts'

const roots: string[] = []
afterEach(() => {
  for (const root of roots.splice(0)) fs.rmSync(root, { recursive: true, force: true })
})
const scratch = (): string => {
  const root = fs.mkdtempSync('/tmp/mb-')
  roots.push(root)
  return root
}

const never = new AbortController().signal
const FACTS = { version: '1.2.3', at: '2026-01-01T00:00:00.000Z', schema: 1, records: 0, head: '0'.repeat(64), dataRoot: '/d', configDir: '/c' }
const LONG = `config/${'deep/'.repeat(30)}ünïcode.md`

/** An archive of three members at `<root>/a.tar`. */
async function archived(root: string): Promise<string> {
  const path = join(root, 'a.tar')
  fs.writeFileSync(join(root, 'db'), Buffer.alloc(1_500_000, 7))
  await using archive = await openArchive(path, never)
  const db = await open(join(root, 'db'))
  await archive.file('store/mosaic.db', db)
  await db.close()
  await archive.directory('git/acme/stack.git/refs')
  await archive.bytes('config/system.yaml', Buffer.from('version: 1\n'))
  await archive.bytes(LONG, Buffer.from('long\n'))
  await archive.finish(toManifest({ ...FACTS, members: [...archive.members], directories: [...archive.directories] }))
  return path
}

const codeOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => 'done',
    (error: unknown) => (error instanceof AppError ? error.code : error),
  )

describe('an archive', () => {
  test('is private, verifies, comes back byte for byte, and is a tar that tar reads', async () => {
    const root = scratch()
    const path = await archived(root)
    expect(fs.statSync(path).mode & 0o777).toBe(0o600)
    expect(fs.readdirSync(root).sort()).toEqual(['a.tar', 'db'])
    const { manifest, wanted } = await verifyArchive(path, 'config/system.yaml')
    expect([manifest.members.map((member) => member.path), wanted?.toString()]).toEqual([['store/mosaic.db', 'config/system.yaml', LONG], 'version: 1\n'])
    await extractArchive(path, manifest, { into: join(root, 'out'), signal: never })
    expect(fs.readFileSync(join(root, 'out', LONG), 'utf8')).toBe('long\n')
    expect(fs.readFileSync(join(root, 'out/store/mosaic.db')).equals(Buffer.alloc(1_500_000, 7))).toBe(true)
    fs.mkdirSync(join(root, 'by-tar'))
    expect(spawnSync('tar', ['-xf', path, '-C', join(root, 'by-tar')], { encoding: 'utf8', env: { LC_ALL: 'C.UTF-8', PATH: process.env.PATH } })).toMatchObject(
      { status: 0, stderr: '' },
    )
    for (const { path: member } of manifest.members)
      expect(fs.readFileSync(join(root, 'by-tar', member)).equals(fs.readFileSync(join(root, 'out', member)))).toBe(true)
  })

  test('replaces nothing, and a cut off one leaves nothing', async () => {
    const root = scratch()
    const path = await archived(root)
    expect(await codeOf(openArchive(path, never))).toBe('config-exists')
    {
      await using archive = await openArchive(join(root, 'b.tar'), never)
      await archive.bytes('config/x', Buffer.from('x'))
      fs.writeFileSync(join(root, 'b.tar'), 'somebody else was faster')
      expect(await codeOf(archive.finish(toManifest({ ...FACTS, members: [], directories: [] })))).toBe('config-exists')
    }
    expect(fs.readFileSync(join(root, 'b.tar'), 'utf8')).toBe('somebody else was faster')
    expect(fs.readdirSync(root).sort()).toEqual(['a.tar', 'b.tar', 'db'])
    expect(await codeOf(openArchive(join(root, 'no', 'c.tar'), never))).toBe('file-unusable')
  })

  test('is gone when whoever waits for it is interrupted', async () => {
    const root = scratch()
    const stop = new AbortController()
    const work = async (): Promise<void> => {
      await using archive = await openArchive(join(root, 'a.tar'), stop.signal)
      await archive.bytes('config/x', Buffer.from('x'))
      expect(fs.readdirSync(root)).toHaveLength(1)
      stop.abort(new AppError('interrupted', 'interrupted'))
      await archive.bytes('config/y', Buffer.from('y'))
    }
    expect(await codeOf(work())).toBe('interrupted')
    expect(fs.readdirSync(root)).toEqual([])
  })

  test('is refused when a byte of it is another, when it is cut short, and when it is none', async () => {
    const root = scratch()
    const path = await archived(root)
    const good = fs.readFileSync(path)
    for (const at of [600, 20, good.indexOf('version: 1\n')]) {
      const bad = Buffer.from(good)
      bad[at] = (bad[at] ?? 0) ^ 1
      fs.writeFileSync(path, bad)
      expect([at, await codeOf(verifyArchive(path, ''))]).toEqual([at, 'backup-invalid'])
    }
    for (const length of [0, 511, 512, 900_000, good.length - 4096]) {
      fs.writeFileSync(path, good.subarray(0, length))
      expect([length, await codeOf(verifyArchive(path, ''))]).toEqual([length, 'backup-invalid'])
    }
    fs.writeFileSync(path, 'no tar\n'.repeat(1000))
    expect(await codeOf(verifyArchive(path, ''))).toBe('backup-invalid')
    fs.writeFileSync(path, good)
    expect(await codeOf(verifyArchive(path, ''))).toBe('done')
    expect(await codeOf(verifyArchive(join(root, 'none'), ''))).toBe('file-unusable')
  })

  test.each(['../../x', 'config/../../x', '/etc/x', 'config//x', 'elsewhere/x', 'store/other'])('is refused when its manifest names %s', async (path) => {
    const root = scratch()
    await using archive = await openArchive(join(root, 'a.tar'), never)
    await archive.bytes(path, Buffer.from('x'))
    await archive.finish(toManifest({ ...FACTS, members: [...archive.members], directories: [] }))
    expect(await codeOf(verifyArchive(join(root, 'a.tar'), ''))).toBe('backup-invalid')
    expect(fs.existsSync('/tmp/x')).toBe(false)
  })

  test('is refused when it holds what its manifest does not name', async () => {
    const root = scratch()
    await using archive = await openArchive(join(root, 'a.tar'), never)
    await archive.bytes('config/x', Buffer.from('x'))
    await archive.finish(toManifest({ ...FACTS, members: [], directories: [] }))
    expect(await codeOf(verifyArchive(join(root, 'a.tar'), ''))).toBe('backup-invalid')
  })
})

test('a tree is collected with its empty directories; links are followed to files where told, never to directories; a FIFO does not hang', async () => {
  const root = scratch()
  const tree = join(root, 'tree')
  fs.mkdirSync(join(tree, 'empty'), { recursive: true })
  fs.writeFileSync(join(tree, 'plain'), 'plain')
  fs.writeFileSync(join(tree, 'x.lock'), 'lock')
  fs.writeFileSync(join(root, 'outside'), 'outside')
  fs.symlinkSync('../outside', join(tree, 'link'))
  fs.symlinkSync('/etc', join(tree, 'etc'))
  spawnSync('mkfifo', [join(tree, 'fifo')])
  const collected = async (followLinks: boolean) => {
    await using archive = await openArchive(join(root, 'a.tar'), never)
    const left = await collectTree(archive, tree, 'config', { followLinks, skip: (name) => name.endsWith('.lock') })
    return { left: left.map((path) => path.slice(tree.length + 1)), members: archive.members.map(({ path }) => path), directories: archive.directories }
  }
  expect(await collected(true)).toEqual({ left: ['etc', 'fifo'], members: ['config/link', 'config/plain'], directories: ['config/empty'] })
  expect(await collected(false)).toEqual({ left: ['etc', 'fifo', 'link'], members: ['config/plain'], directories: ['config/empty'] })
})

test('a tree that is no longer ours to read ends the collecting, with the reason', async () => {
  const root = scratch()
  fs.mkdirSync(join(root, 'from', 'deep'), { recursive: true })
  fs.writeFileSync(join(root, 'from', 'deep', 'file'), 'x')
  const held = new AbortController()
  const skip = (name: string): boolean => {
    if (name === 'file') held.abort(new AppError('busy', 'the lock was lost'))
    return false
  }
  await using archive = await openArchive(join(root, 'a.tar'), new AbortController().signal)
  expect(await collectTree(archive, join(root, 'from'), 'one', { followLinks: false, skip: () => false, signal: held.signal })).toEqual([])
  fs.writeFileSync(join(root, 'from', 'deep', 'more'), 'x')
  await expect(collectTree(archive, join(root, 'from'), 'two', { followLinks: false, skip, signal: held.signal })).rejects.toMatchObject({ code: 'busy' })
})

test('headers carry sizes past eight gigabytes and names past a hundred bytes', () => {
  const header = toHeader({ path: LONG, kind: 'file', sizeBytes: 3e12 })
  expect(parseHeader(header.subarray(0, 512))).toMatchObject({ type: 'x' })
  const records = parseRecords(header.subarray(512, 512 + (parseHeader(header.subarray(0, 512))?.sizeBytes ?? 0)))
  expect([records.get('path'), records.get('size')]).toEqual([LONG, '3000000000000'])
  expect(parseHeader(toHeader({ path: 'a', kind: 'file', sizeBytes: 5 }))).toEqual({ path: 'a', type: '0', sizeBytes: 5 })
  expect(parseHeader(Buffer.alloc(512))).toBeNull()
})
