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

let root: string
let manifest: Manifest
let paths: DataRootPaths
const file = (): string => join(root, 'b.tar')
beforeEach(async () => {
  root = fs.mkdtempSync('/tmp/mr-')
  const from = openDataRoot(join(root, 'from'))
  await openStore({ dataRoot: from.root, business: 'acme', log: silentLog, clock: systemClock })[Symbol.asyncDispose]()
  const signal = new AbortController().signal
  manifest = (await makeBackup({ version: '1', file: file(), dataRoot: from.root, configDir: join(root, 'c'), askHost: null, signal })).manifest
  paths = openDataRoot(join(root, 'to'))
})
afterEach(() => fs.rmSync(root, { recursive: true }))

const fill = (more: { signal?: AbortSignal; wasThere?: boolean; manifest?: Manifest } = {}): Promise<boolean> =>
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
