import { execFileSync } from 'node:child_process'
import { chmodSync, closeSync, constants, lstatSync, mkdirSync, openSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { emptyTree } from '../../src/workspace/prepare.ts'
import { fifo, makeWorld, type World } from './world.ts'

let w: World
beforeEach(async () => {
  w = await makeWorld()
})
afterEach(() => w.close())

const LIMIT = { timeoutMs: 30_000 }

async function empty(path: string, keep: readonly string[] = []): Promise<string[]> {
  const fd = openSync(path, constants.O_RDONLY | constants.O_DIRECTORY)
  try {
    await emptyTree(w.deps, { fd, path }, keep, LIMIT)
  } finally {
    closeSync(fd)
  }
  return readdirSync(path).sort()
}

test('keeps the list, removes the rest, follows no link', async () => {
  const root = w.path('env')
  const precious = w.write(w.path('outside', 'precious.txt'), 'precious')
  for (const name of ['lock', 'owner.json', 'notes.txt', 'workspace/stack/a.txt', 'workspace/lock']) w.write(join(root, name), name)
  symlinkSync(w.path('outside'), join(root, 'workspace', 'link'))
  symlinkSync(precious, join(root, 'file-link'))
  symlinkSync('/', join(root, 'slash'))
  fifo(join(root, 'workspace', 'fifo'))
  const before = lstatSync(join(root, 'lock')).ino
  expect(await empty(root, ['lock', 'owner.json'])).toEqual(['lock', 'owner.json'])
  expect(lstatSync(join(root, 'lock')).ino).toBe(before)
  expect(readFileSync(precious, 'utf8')).toBe('precious')
})

test('copes with read-only directories, modes of nothing and any bytes in names', async () => {
  const root = w.path('env')
  mkdirSync(join(root, 'deep', 'er', 'still'), { recursive: true })
  w.write(join(root, 'deep', 'er', 'file'), 'x')
  writeFileSync(Buffer.concat([Buffer.from(`${root}/deep/`), Buffer.from([0xff, 0xfe, 0x0a, 0x20])]), 'bytes')
  mkdirSync(Buffer.concat([Buffer.from(`${root}/`), Buffer.from([0xc3, 0x28])]))
  mkdirSync(join(root, '.mosaic-gone-2-0'))
  chmodSync(join(root, 'deep', 'er', 'still'), 0o000)
  chmodSync(join(root, 'deep', 'er'), 0o500)
  chmodSync(join(root, 'deep'), 0o000)
  expect(await empty(root)).toEqual([])
})

test('a tree far deeper than a path may be long', async () => {
  const root = w.path('env')
  mkdirSync(root)
  execFileSync('perl', ['-e', 'chdir shift or die; for (1 .. 3000) { mkdir "d" or die; chdir "d" or die } open F, ">leaf" or die', root])
  expect(await empty(root)).toEqual([])
})
