import { chmodSync, existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { CheckRow } from '../../src/doctor/check.ts'
import { World } from '../helpers/world.ts'

let world: World
beforeEach(() => {
  world = new World({ project: true })
})
afterEach(() => world[Symbol.asyncDispose]())

async function find(name: string, args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<CheckRow | undefined> {
  const { data } = await world.json(['doctor', ...args], { env })
  return (data as { readonly checks: readonly CheckRow[] }).checks.find((check) => check.name === name)
}

test('the remedy for a lost store works as it stands', async () => {
  await (await world.start()).stop()
  const backup = join(world.root, 'b.tar')
  await world.must(['backup', backup])
  rmSync(join(world.data, 'mosaic.db'))
  const lost = await find('mosaic.db', ['store'])
  expect(lost).toMatchObject({ code: 'store-lost', remedy: expect.stringContaining(`mv ${world.data} ${world.data}.aside && mosaic restore FILE`) as string })
  expect((await world.json(['restore', backup])).error.code).toBe('data-root-not-empty')
  renameSync(world.data, `${world.data}.aside`)
  await world.must(['restore', backup])
  expect(await find('mosaic.db', ['store'])).toMatchObject({ state: 'ok' })
})

test('a store and a file of the configuration that may not be read want their mode back, and nothing moved', async () => {
  await (await world.start()).stop()
  const db = join(world.data, 'mosaic.db')
  chmodSync(db, 0)
  const refused = await world.run(['bus', 'start'])
  expect([refused.code, refused.stderr]).toEqual([3, expect.stringContaining(`may not be read by this user (EACCES)\nhint: chmod 600 ${db}\n`)])
  expect(refused.stderr).not.toContain('aside')
  expect(await find('mosaic.db', ['store'])).toMatchObject({ state: 'fail', remedy: `chmod 600 ${db}` })
  chmodSync(db, 0o600)
  const file = join(world.config, 'businesses', 'acme.yaml')
  chmodSync(file, 0)
  expect(await find('files', ['config'])).toMatchObject({ state: 'fail', remedy: `chmod 600 ${file}` })
  chmodSync(file, 0o600)
  expect(await find('files', ['config'])).toMatchObject({ state: 'ok' })
})

test('project roots: as they should be, without the branch, no repository, not there', async () => {
  const root = join(world.root, 'stack')
  const name = 'acme/stack'
  expect(await find(name, ['git'])).toMatchObject({ state: 'ok', message: `${root}, branch main` })
  world.git(root, 'pack-refs', '--all')
  expect(await find(name, ['git'])).toMatchObject({ state: 'ok' })
  world.git(root, 'branch', '-m', 'trunk')
  expect(await find(name, ['git'])).toMatchObject({ state: 'fail', code: 'checkout-failed', message: `${root} has no branch main` })
  world.git(root, 'branch', '-m', 'main')
  chmodSync(root, 0)
  expect(await find(name, ['git'])).toMatchObject({ state: 'fail', remedy: expect.stringContaining(`ls -ld ${root}`) as string })
  chmodSync(root, 0o755)
  renameSync(join(root, '.git'), join(root, 'git'))
  expect(await find(name, ['git'])).toMatchObject({ state: 'fail', message: `${root} is no git repository` })
  rmSync(root, { recursive: true })
  expect(await find(name, ['git'])).toMatchObject({ state: 'fail', remedy: expect.stringContaining('git clone') as string })
})

test('a linked work tree and a bare repository are repositories, too', async () => {
  const root = join(world.root, 'stack')
  world.git(root, 'worktree', 'add', '-q', join(world.root, 'tree'), '-b', 'side')
  world.git(world.root, 'clone', '-q', '--bare', root, join(world.root, 'bare.git'))
  world.business = {
    ...world.business,
    projects: { tree: { root: join(world.root, 'tree'), branch: 'main' }, bare: { root: join(world.root, 'bare.git'), branch: 'main' } },
  }
  world.configure()
  const odd = await world.json(['doctor', 'store', 'disk', 'sockets', '--data-root', join(world.root, 'stack', 'file.txt', 'x')])
  expect(JSON.stringify(odd.data)).not.toContain('check itself failed')
  for (const name of ['acme/tree', 'acme/bare']) expect(await find(name, ['git'])).toMatchObject({ state: 'ok' })
})

test('a bwrap that is a directory, or no program', async () => {
  const path = join(world.root, 'bwrap')
  world.system.sandbox = { bwrap: path }
  world.configure()
  const unfit = { state: 'fail', message: expect.stringContaining('no program that this user may run') as string }
  mkdirSync(path)
  expect(await find('policy', ['sandbox'])).toMatchObject(unfit)
  rmSync(path, { recursive: true })
  writeFileSync(path, '#!/bin/sh\n')
  expect(await find('policy', ['sandbox'])).toMatchObject(unfit)
  rmSync(path)
  expect(await find('policy', ['sandbox'])).toMatchObject({ message: expect.stringContaining('system.yaml names it') as string })
})

test('a file in the place of the data root is a finding, and no check breaks on it', async () => {
  const file = world.write(join(world.root, 'file'), '')
  const { data } = await world.json(['doctor', '--data-root', file])
  const checks = (data as { readonly checks: readonly CheckRow[] }).checks.filter(({ category }) => category !== 'sandbox')
  expect(checks.filter(({ message }) => message.includes('check itself failed'))).toEqual([])
  expect(checks).toContainEqual(expect.objectContaining({ code: 'data-root-unsafe', message: `${file} is not a directory` }))
  expect(existsSync(join(world.root, 'file'))).toBe(true)
})
