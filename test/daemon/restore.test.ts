import * as fs from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { Manifest } from '../../src/backup/manifest.ts'
import { systemClock } from '../../src/core/clock.ts'
import { silentLog } from '../../src/core/log.ts'
import { fillDataRoot } from '../../src/daemon/backup/fill.ts'
import { makeBackup } from '../../src/daemon/backup/make.ts'
import { type DataRootPaths, openDataRoot } from '../../src/daemon/data-root.ts'
import { openHostLock } from '../../src/daemon/host-lock.ts'
import { openStore } from '../../src/store/open.ts'

/** Below a path that is nearly as long as one may be (path_resolution(7)) no file can have this name. */
const LONG = 'p'.repeat(200)
let root: string
let manifest: Manifest
let paths: DataRootPaths
const file = (): string => join(root, 'b.tar')
const TEXT = 'a prompt of a long name'
beforeEach(async () => {
  root = fs.mkdtempSync('/tmp/mr-')
  fs.mkdirSync(join(root, 'c', 'prompts'), { recursive: true })
  fs.writeFileSync(join(root, 'c', 'system.yaml'), 'version: 1\n')
  fs.writeFileSync(join(root, 'c', 'prompts', LONG), TEXT)
  const from = openDataRoot(join(root, 'from'))
  await openStore({ dataRoot: from.root, business: 'acme', log: silentLog, clock: systemClock })[Symbol.asyncDispose]()
  const signal = new AbortController().signal
  manifest = (await makeBackup({ version: '1', file: file(), dataRoot: from.root, configDir: join(root, 'c'), askHost: null, signal })).manifest
  paths = openDataRoot(join(root, 'to'))
})
afterEach(() => fs.rmSync(root, { recursive: true }))

const fill = (more: { configDir?: string; wasThere?: boolean; manifest?: Manifest } = {}): Promise<boolean> =>
  fillDataRoot(paths, { file: file(), configDir: join(root, 'c'), signal: new AbortController().signal, manifest, wasThere: false, ...more })

/** What a bus host that came in between has made. */
function hostLived(): string[] {
  for (const name of ['mosaic.db', 'mosaic.db.created', 'git/acme/stack.git/HEAD']) {
    fs.mkdirSync(join(paths.root, name, '..'), { recursive: true })
    fs.writeFileSync(join(paths.root, name), 'theirs')
  }
  return fs.readdirSync(paths.root, { recursive: true }).map(String).sort()
}

test('an empty data root is filled', async () => {
  expect(await fill()).toBe(false)
  expect(fs.existsSync(join(paths.root, 'mosaic.db'))).toBe(true)
})

test('a host that has started in between keeps all of its files, whether it still runs or not', async () => {
  const theirs = hostLived()
  const lock = openHostLock(paths.lock)
  await expect(fill()).rejects.toMatchObject({ code: 'host-running' })
  await lock[Symbol.asyncDispose]()
  await expect(fill()).rejects.toMatchObject({ code: 'data-root-not-empty' })
  expect(fs.readdirSync(paths.root, { recursive: true }).map(String).sort()).toEqual([...theirs, 'bus-host/host.lock'].sort())
  expect(fs.readFileSync(join(paths.root, 'mosaic.db'), 'utf8')).toBe('theirs')
})

test('what fails is taken back whole: the data root too, when it was not there', async () => {
  const other = { ...manifest, head: 'f'.repeat(64) }
  await expect(fill({ manifest: other, wasThere: true })).rejects.toMatchObject({ code: 'trail-mismatch' })
  expect(fs.readdirSync(paths.root)).toEqual([])
  paths = openDataRoot(paths.root)
  await expect(fill({ manifest: other })).rejects.toMatchObject({ code: 'trail-mismatch' })
  expect(fs.existsSync(paths.root)).toBe(false)
})

test('a configuration is put in place whole, with all else, into an absent directory or an empty one', async () => {
  const configDir = join(root, 'new', 'c')
  expect(await fill({ configDir })).toBe(true)
  expect(fs.readdirSync(configDir, { recursive: true }).map(String).sort()).toEqual(['prompts', join('prompts', LONG), 'system.yaml'])
  expect(fs.readFileSync(join(configDir, 'prompts', LONG), 'utf8')).toBe(TEXT)
  paths = openDataRoot(join(root, 'another'))
  fs.mkdirSync(join(root, 'empty'))
  expect(await fill({ configDir: join(root, 'empty') })).toBe(true)
  expect(fs.readdirSync(join(root, 'empty')).sort()).toEqual(['prompts', 'system.yaml'])
})

test('a configuration that fails half way leaves nothing of itself, and no data root', async () => {
  const deep = join(root, ...Array.from({ length: 21 }, () => 'd'.repeat(190)))
  for (const isThere of [false, true]) {
    if (isThere) fs.mkdirSync(deep, { recursive: true })
    await expect(fill({ configDir: deep })).rejects.toThrow('ENAMETOOLONG')
    expect([fs.existsSync(paths.root), fs.existsSync(deep) && fs.readdirSync(deep)]).toEqual([false, isThere && []])
    paths = openDataRoot(paths.root)
  }
  expect(await fill({ configDir: join(root, 'short') })).toBe(true) // the control
})
