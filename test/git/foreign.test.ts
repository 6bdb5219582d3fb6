import { readFileSync } from 'node:fs'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { bundleFor } from '../../src/git/fetch.ts'
import { openIncoming } from '../../src/git/incoming.ts'
import { packOf } from './bundles.ts'
import { type GitWorld, makeGitWorld } from './world.ts'

const SECRET = 'secret of t-1\n'
let w: GitWorld
let foreign: { readonly blob: string; readonly tree: string; readonly commit: string }
beforeEach(async () => {
  w = await makeGitWorld()
  const blob = w.forge.object('blob', SECRET)
  const tree = w.forge.tree([{ mode: '100644', name: 's.txt', oid: blob }])
  const commit = w.forge.commit(tree, w.base)
  await w.push('t-1', w.forge.honest(commit, w.base), commit)
  foreign = { blob, tree, commit }
})
afterEach(() => w.close())

interface Made {
  readonly tip: string
  readonly bytes: Buffer
}
type Make = (known: typeof foreign) => Made

/** Objects of the same kinds that are nowhere. */
function absent(): typeof foreign {
  const blob = w.forge.object('blob', 'nowhere, at 1\n')
  const tree = w.forge.tree([{ mode: '100644', name: 's.txt', oid: blob }])
  return { blob, tree, commit: w.forge.commit(tree, w.base) }
}

async function refusal(make: Make, known: typeof foreign): Promise<{ code: unknown; message: string }> {
  const { tip, bytes } = make(known)
  const error: unknown = await w.push('t-2', bytes, tip).then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  const { code, message } = error as { code: unknown; message: string }
  const names = [known.commit, known.tree, known.blob, tip]
  return { code, message: names.reduce((text, oid, n) => text.replaceAll(oid, `<${String(n)}>`), message) }
}

const cut = (tip: string, objects: string[], prerequisites: string[]): Made => ({ tip, bytes: w.forge.bundle({ tip, objects, prerequisites }) })

function withDelta({ blob, commit }: typeof foreign, prerequisites = [commit, w.base]): Made {
  const copied = w.forge.object('blob', `${w.forge.raw(blob).content.toString()}!`)
  const tree = w.forge.tree([{ mode: '100644', name: 'copy.txt', oid: copied }])
  const tip = w.forge.commit(tree, w.base)
  const sizeBytes = w.forge.raw(blob).content.length
  const pack = packOf([w.forge.raw(tip), w.forge.raw(tree), { type: 'blob', content: Buffer.from('!'), base: { oid: blob, sizeBytes } }])
  return { tip, bytes: w.forge.bundle({ tip, pack, prerequisites }) }
}

const ATTACKS: readonly (readonly [what: string, make: Make, code: string])[] = [
  ['its commit as tip and prerequisite, and nothing else', ({ commit }) => cut(commit, [], [commit]), 'missing-prerequisites'],
  ['its commit as tip, without a prerequisite', ({ commit }) => cut(commit, [], [w.base]), 'bundle-invalid'],
  [
    'its commit as parent and prerequisite',
    ({ commit }) => {
      const tip = w.forge.commit(w.forge.git('rev-parse', `${w.base}^{tree}`), commit)
      return cut(tip, [tip], [w.base, commit])
    },
    'missing-prerequisites',
  ],
  [
    'its commit as parent beside one that is nowhere',
    ({ commit }) => {
      const tip = w.forge.commit(w.forge.git('rev-parse', `${w.base}^{tree}`), w.base, commit, 'f'.repeat(40))
      return cut(tip, [tip], [w.base])
    },
    'missing-prerequisites',
  ],
  [
    'its tree',
    ({ tree }) => {
      const tip = w.forge.commit(tree, w.base)
      return cut(tip, [tip], [w.base])
    },
    'missing-prerequisites',
  ],
  [
    'its blob',
    ({ blob }) => {
      const tree = w.forge.tree([{ mode: '100644', name: 'mine.txt', oid: blob }])
      const tip = w.forge.commit(tree, w.base)
      return cut(tip, [tip, tree], [w.base])
    },
    'missing-prerequisites',
  ],
  ["its blob as a delta's base", (known) => withDelta(known, [w.base]), 'bundle-invalid'],
]

describe("a push cannot take another task's work by its id: it is refused as if there were no such object", () => {
  test.each(ATTACKS)('%s', async (_, make, code) => {
    const nowhere = await refusal(make, absent())
    expect(nowhere.code).toBe(code)
    expect(await refusal(make, foreign)).toEqual(nowhere)
    expect(w.git(w.repository, 'for-each-ref', 'refs/heads/work/t-2')).toBe('')
  })

  test('of several prerequisites the first is named, whether or not another exists', async () => {
    const lists = (other: string): Made => {
      const tip = w.forge.commit(w.forge.git('rev-parse', `${w.base}^{tree}`), w.base)
      return cut(tip, [tip], [w.base, other, 'f'.repeat(40)])
    }
    for (const { commit } of [foreign, absent()])
      await expect(w.push('t-2', lists(commit).bytes, lists(commit).tip)).rejects.toMatchObject({ code: expect.anything() as string })
    const nowhere = await refusal(({ commit }) => lists(commit), absent())
    expect(await refusal(({ commit }) => lists(commit), foreign)).toEqual(nowhere)
    expect(nowhere.message).toContain('<0>')
  })
})

describe('the controls: who may fetch t-1', () => {
  const visible = ['t-1']
  test('adopts its commit, builds on it and on its objects', async () => {
    const { commit, blob } = foreign
    expect(await w.push('t-2', cut(commit, [], [commit]).bytes, commit, { visible })).toMatchObject({ commit })
    const tree = w.forge.tree([{ mode: '100644', name: 'again.txt', oid: blob }])
    const next = w.forge.commit(tree, commit)
    expect(await w.push('t-3', cut(next, [next, tree], [commit]).bytes, next, { visible })).toMatchObject({ commit: next })
    expect(w.git(w.repository, 'fsck', '--full', '--strict')).toBe('')
  })
  test('sends deltas against it, as anybody does against main', async () => {
    const made = withDelta(foreign)
    expect(await w.push('t-2', made.bytes, made.tip, { visible })).toMatchObject({ commit: made.tip })
    const blob = w.forge.git('rev-parse', `${w.base}:file.txt`)
    const ofMain = withDelta({ ...foreign, blob }, [w.base])
    expect(await w.push('t-3', ofMain.bytes, ofMain.tip)).toMatchObject({ commit: ofMain.tip })
    expect(w.git(w.repository, 'cat-file', '-p', 'refs/heads/work/t-2:copy.txt')).toBe(`${SECRET}!`)
  })
})

test('after main was rewritten, work on the earlier main still lands, whole', async () => {
  const [own, more] = [w.forge.commit(foreign.tree, w.base), 'more\n']
  const blob = w.forge.object('blob', more)
  const tip = w.forge.commit(w.forge.tree([{ mode: '100644', name: 'm.txt', oid: blob }]), own)
  const rewritten = w.git(w.repository, 'commit-tree', '-m', 'another', 'refs/heads/main^{tree}')
  const merged = w.git(w.repository, 'commit-tree', '-p', rewritten, '-p', 'refs/heads/main', '-m', 'join', 'refs/heads/main^{tree}')
  await w.push('t-2', w.forge.honest(own, w.base), own)
  w.git(w.repository, 'update-ref', 'refs/heads/main', merged)
  await w.push('t-2', w.forge.honest(tip, own), tip)
  expect(w.git(w.repository, 'rev-parse', 'refs/heads/work/t-2')).toBe(tip)
  expect(w.git(w.repository, 'fsck', '--full', '--strict')).toBe('')
})

test("a fetch takes no notice of another task's commits among those that the peer says it has", async () => {
  const tip = w.forge.commit(w.forge.tree([{ mode: '100644', name: 'same.txt', oid: foreign.blob }]), w.base)
  await w.push('t-2', w.forge.honest(tip, w.base), tip)
  const get = async (tasks: string[], have: string[]): Promise<string> => {
    await using incoming = await openIncoming(w.gitRoot)
    const { path, sizeBytes } = await bundleFor(w.intake, { business: 'acme', project: 'stack', tasks, have, directory: incoming.path })
    return sizeBytes === 0 ? '' : readFileSync(path).toString('latin1')
  }
  const above = w.forge.commit(foreign.tree, tip)
  await w.push('t-9', w.forge.honest(above, tip), above, { visible: ['t-2'] })
  const plain = await get(['t-2'], [w.base])
  for (const id of [foreign.commit, above, 'f'.repeat(40)]) expect(await get(['t-2'], [w.base, id])).toBe(plain)
  expect(plain).toContain(`-${w.base}`)
  expect(await get(['t-2', 't-9'], [w.base, above])).toBe('') // the control: who may see it is believed
})
