import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { locateNode } from '../../src/sandbox/node-program.ts'
import { ensureRunnerNode } from '../../src/sandbox/runner-node.ts'
import { assertSources, conflictOf, type Forbidden } from '../../src/sandbox/sources.ts'
import { ownBind, visible } from '../../src/sandbox/steps.ts'

let root: string
let forbidden: Forbidden
beforeEach(() => {
  root = realpathSync(mkdtempSync('/tmp/ms-'))
  for (const name of ['home/.local/share/mosaic', 'home/.local/bin', 'home/.nvm/v20/bin', 'home/.nvm/v20/lib/node_modules/npm', 'home/src/stack/bin'])
    mkdirSync(join(root, name), { recursive: true })
  forbidden = { trees: [join(root, 'home/.local/share/mosaic'), join(root, 'home/src/stack'), join(root, 'absent')], home: join(root, 'home') }
})
afterEach(() => rmSync(root, { recursive: true, force: true }))

const relation = (name: string): string | undefined => conflictOf(join(root, name), forbidden)?.relation

test('a source may not be, hold or lie in what must stay outside', () => {
  expect(relation('home')).toBe('holds')
  expect(conflictOf(forbidden.home, { ...forbidden, trees: [] })?.relation).toBe('is')
  expect(relation('')).toBe('holds')
  expect(relation('home/.local')).toBe('holds')
  expect(relation('home/.local/share/mosaic')).toBe('is')
  expect(relation('home/src/stack/bin')).toBe('lies in')
  expect(conflictOf('/', forbidden)?.relation).toBe('holds')
  expect(conflictOf('/run/user', forbidden)).toEqual(
    statSync('/run/user', { throwIfNoEntry: false }) === undefined ? null : { relation: 'is', path: '/run/user' },
  )
  // the controls: what lies beside them, and below HOME
  expect([relation('home/.local/bin'), relation('home/.nvm/v20'), relation('nothing-there'), conflictOf('/usr', forbidden)?.relation]).toEqual([
    undefined,
    undefined,
    undefined,
    undefined,
  ])
})

test('a link is what it leads to', () => {
  symlinkSync(join(root, 'home/src/stack'), join(root, 'link'))
  expect(relation('link')).toBe('is')
  expect(relation('link/bin')).toBe('lies in')
  symlinkSync(join(root, 'home'), join(root, 'other-home'))
  expect(conflictOf(join(root, 'home/.local'), { trees: [], home: join(root, 'other-home') })).toBeNull()
  expect(conflictOf(join(root, 'home'), { trees: [], home: join(root, 'other-home') })?.relation).toBe('is')
})

test('a step that would uncover one is refused by name; our own are not', () => {
  const source = join(root, 'home/src/stack/bin')
  expect(() => assertSources([visible('/usr'), visible(source, '/opt/x')], forbidden)).toThrow(
    expect.objectContaining({
      code: 'sandbox-unavailable',
      message: `${source} would be visible in the sandbox, but it lies in ${join(root, 'home/src/stack')}`,
    }),
  )
  expect(() => assertSources([visible('/usr'), ownBind(source, '/opt/x', true)], forbidden)).not.toThrow()
})

test('Node below /usr is used where it is; an install prefix, or the one file, gets a fixed place', async () => {
  const node = realpathSync(process.execPath)
  if (node.startsWith('/usr/')) expect(await locateNode(forbidden, '/usr/bin/node')).toEqual({ path: node, programs: [], pathDirs: ['/usr/bin'] })
  writeFileSync(join(root, 'home/.nvm/v20/bin/node'), '')
  symlinkSync(join(root, 'home/.nvm/v20/bin/node'), join(root, 'home/.local/bin/node'))
  const prefix = {
    path: '/opt/mosaic/node/bin/node',
    programs: [{ source: join(root, 'home/.nvm/v20'), dest: '/opt/mosaic/node' }],
    pathDirs: ['/opt/mosaic/node/bin'],
  }
  expect(await locateNode(forbidden, join(root, 'home/.local/bin/node'))).toEqual(prefix)
  // ~/.local as a prefix would uncover the data root
  rmSync(join(root, 'home/.local/bin/node'))
  mkdirSync(join(root, 'home/.local/lib/node_modules/npm'), { recursive: true })
  writeFileSync(join(root, 'home/.local/bin/node'), '')
  const file = join(root, 'home/.local/bin/node')
  expect(await locateNode(forbidden, file)).toEqual({ ...prefix, programs: [{ source: file, dest: '/opt/mosaic/node/bin/node' }] })
})

test("the runner's Node is execute-only, made once, and made anew when source or copy change", async () => {
  const source = join(root, 'source')
  copyFileSync('/bin/echo', source)
  chmodSync(source, 0o755)
  const [path, again] = await Promise.all([ensureRunnerNode(root, source), ensureRunnerNode(root, source)])
  expect([path, again]).toEqual([join(root, 'node'), join(root, 'node')])
  expect(statSync(path).mode & 0o7777).toBe(0o111)
  expect(() => readFileSync(path)).toThrow(/EACCES/)
  expect(spawnSync(path, ['words'], { encoding: 'utf8' }).stdout).toBe('words\n')
  const inode = async (): Promise<number> => statSync(await ensureRunnerNode(root, source)).ino
  const first = await inode()
  expect(await inode()).toBe(first)
  utimesSync(source, 1, 1)
  const second = await inode()
  expect(second).not.toBe(first)
  chmodSync(path, 0o755)
  expect(await inode()).not.toBe(second)
  expect(statSync(path).mode & 0o7777).toBe(0o111)
  rmSync(path)
  expect(spawnSync(await ensureRunnerNode(root, source), ['x'], { encoding: 'utf8' }).stdout).toBe('x\n')
  expect(readdirSync(root).filter((name) => name.startsWith('.node'))).toEqual([])
})
