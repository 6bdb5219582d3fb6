import { mkdirSync, readFileSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { prepareWorkspace, type PreparedProject, unsavedWork } from '../../src/workspace/prepare.ts'
import { exists, makeWorld, snapshot, type World } from './world.ts'

let w: World
beforeEach(async () => {
  w = await makeWorld()
  await prepare()
})
afterEach(() => w.close())

async function prepare(): Promise<PreparedProject | undefined> {
  const projects = [{ id: 'stack', root: w.project, branch: 'main' }]
  return (await prepareWorkspace(w.deps, { business: 'acme', projects, workspace: w.workspace, deadlineMs: 20_000 }))[0]
}

/** Moves a part of the clone's .git away, to where no session may write, and links to it. */
function linkAway(name: string): string {
  const [path, away] = [join(w.clone, '.git', name), w.path('away', name)]
  mkdirSync(w.path('away'), { recursive: true })
  if (exists(path)) renameSync(path, away)
  else if (name.includes('HEAD')) w.write(away, 'precious\n')
  else mkdirSync(away, { recursive: true })
  symlinkSync(away, path)
  return away
}

test.each(['objects', 'refs', 'logs', 'FETCH_HEAD', 'ORIG_HEAD', 'index', 'packed-refs', 'config', 'HEAD'])(
  'a linked %s in a clone leads no look, no fast-forward and no search for unsaved work out of the workspace',
  async (name) => {
    if (name === 'packed-refs') w.git(w.clone, 'pack-refs', '--all')
    const tip = w.commit(w.project, 'two')
    linkAway(name)
    const before = [snapshot(w.path('away'), '', true), snapshot(w.repository)]
    const unsaved = await unsavedWork(w.deps, { business: 'acme', workspace: w.workspace })
    const prepared = await prepare()
    expect(prepared?.kept === null || prepared?.kept === 'unreadable' || prepared?.kept === 'dirty' || prepared?.kept === 'branch').toBe(true)
    expect(unsaved.every(({ project }) => project === 'stack')).toBe(true)
    expect(snapshot(w.path('away'), '', true)).toEqual(before[0])
    // main alone has moved in the working repository: it is where the root is
    expect(w.git(w.repository, 'for-each-ref', '--format=%(refname) %(objectname)')).toBe(`refs/heads/main ${tip}`)
  },
)

test('the control: what is linked inside of the workspace is written through', async () => {
  const tip = w.commit(w.project, 'two')
  const inside = join(w.workspace.path, 'logs')
  renameSync(join(w.clone, '.git', 'logs'), inside)
  symlinkSync(inside, join(w.clone, '.git', 'logs'))
  expect(await prepare()).toMatchObject({ kept: null })
  expect(readFileSync(join(inside, 'HEAD'), 'utf8')).toContain(tip)
  rmSync(inside, { recursive: true })
})

test('objects that are linked to the working repository lead no helper to it, and no object into it', async () => {
  rmSync(join(w.clone, '.git', 'objects'), { recursive: true })
  symlinkSync(join(w.repository, 'objects'), join(w.clone, '.git', 'objects'))
  const before = snapshot(w.repository, '', true)
  expect(await unsavedWork(w.deps, { business: 'acme', workspace: w.workspace })).toEqual([{ project: 'stack', reason: 'unreadable' }])
  expect(await prepare()).toMatchObject({ kept: 'unreadable' })
  expect(snapshot(w.repository, '', true)).toEqual(before)
})
