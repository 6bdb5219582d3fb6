import { mkdirSync, readdirSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { BAD_COMMITS, BAD_GITMODULES, BAD_TREES, type TreeEntry } from '../../fixtures/git/bad-objects.ts'
import { AppError } from '../../src/core/errors.ts'
import type { IntakeDeps } from '../../src/git/intake.ts'
import { advanceRef, type RefStep } from '../../src/git/ref-file.ts'
import { snapshot } from '../workspace/world.ts'
import { packOfZeros } from './bundles.ts'
import { type GitWorld, makeGitWorld } from './world.ts'

let w: GitWorld
let goodTree: string
beforeAll(async () => {
  w = await makeGitWorld()
  goodTree = w.forge.git('rev-parse', `${w.base}^{tree}`)
})
afterAll(() => w.close())

const tip = (task: string): string => w.git(w.repository, 'for-each-ref', '--format=%(objectname)', `refs/heads/work/${task}`)
const picture = (): Record<string, string> => snapshot(w.repository, '', true)

/** The push is refused by that code, saying that, and the repository is byte for byte and stamp for stamp as it was. */
async function refused(bytes: Buffer, commit: string, code: string, words: RegExp | string = '', task = 't-1'): Promise<void> {
  const before = picture()
  const refusal = await w.push(task, bytes, commit).catch((error: unknown) => error)
  expect(refusal).toBeInstanceOf(AppError)
  expect(refusal).toMatchObject({ code })
  expect((refusal as AppError).message).toMatch(words)
  expect(picture()).toEqual(before)
  expect(readdirSync(join(w.gitRoot, '.incoming'))).toEqual([])
}

/** A commit on top of main whose tree is these entries beside the project's own file, and a bundle of what it needs. */
function withTree(entries: readonly TreeEntry[], extra: readonly string[] = []): { tree: string; commit: string; bytes: Buffer } {
  const tree = w.forge.tree(entries)
  const commit = w.forge.commit(tree, w.base)
  const blob = w.forge.object('blob', 'good\n')
  return { tree, commit, bytes: w.forge.bundle({ tip: commit, prerequisites: [w.base], objects: [commit, tree, blob, ...extra] }) }
}

describe('a good push', () => {
  test('lands by fast-forward, again and again; the same tip adds nothing; nothing is left behind', async () => {
    const one = w.forge.commit(goodTree, w.base)
    expect(await w.push('t-good', w.forge.honest(one, w.base), one)).toEqual({ push: 'p1', ref: 'refs/heads/work/t-good', commit: one })
    expect(tip('t-good')).toBe(one)
    const blob = w.forge.object('blob', 'changed\n')
    const two = w.forge.commit(
      w.forge.tree([
        { mode: '100644', name: 'file.txt', oid: blob },
        { mode: '120000', name: 'link', oid: w.forge.object('blob', 'file.txt') },
      ]),
      one,
    )
    await w.push('t-good', w.forge.honest(two, one), two)
    expect(tip('t-good')).toBe(two)
    const before = picture()
    await w.push('t-good', w.forge.honest(two, w.base), two)
    expect(picture()).toEqual(before)
    expect(w.git(w.repository, 'fsck', '--full', '--strict')).toBe('')
    expect(readdirSync(join(w.gitRoot, '.incoming'))).toEqual([])
    expect(w.recorded.map(({ commit }) => commit)).toEqual([one, two, two])
  })

  test('a thin pack, a whole history without prerequisites, and a merge of main are fine', async () => {
    const text = Array.from({ length: 400 }, (_, n) => `line ${String(n)}`).join('\n')
    const big = w.forge.commit(w.forge.tree([{ mode: '100644', name: 'big.txt', oid: w.forge.object('blob', text) }]), w.base)
    await w.push('t-thin', w.forge.honest(big), big)
    const more = w.forge.commit(w.forge.tree([{ mode: '100644', name: 'big.txt', oid: w.forge.object('blob', `${text}\nmore`) }]), big)
    await w.push('t-thin', w.forge.honest(more, big), more)
    const merge = w.forge.commit(goodTree, more, w.base)
    await w.push('t-thin', w.forge.honest(merge, more), merge)
    expect(tip('t-thin')).toBe(merge)
  })
})

test.each([3, 150])('of %i files all must be in the pack', async (count) => {
  const blobs = Array.from({ length: count }, (_, n) => w.forge.object('blob', `file ${String(n)} of ${String(count)}\n`))
  const tree = w.forge.tree(blobs.map((oid, n) => ({ mode: '100644', name: `f${String(n).padStart(3, '0')}`, oid })))
  const commit = w.forge.commit(tree, w.base)
  const bundleOf = (objects: readonly string[]): Buffer => w.forge.bundle({ tip: commit, prerequisites: [w.base], objects: [commit, tree, ...objects] })
  await refused(bundleOf(blobs.slice(1)), commit, 'missing-prerequisites', blobs[0])
  expect(await w.push(`t-${String(count)}-files`, bundleOf(blobs), commit)).toMatchObject({ commit })
})

describe('strict checks', () => {
  for (const [what, entries] of BAD_TREES) {
    test(`a tree with ${what} is fsck-failed, naming the object`, async () => {
      const { tree, commit, bytes } = withTree(entries)
      await refused(bytes, commit, 'fsck-failed', new RegExp(`object ${tree}|object [0-9a-f]{40}: (gitmodules|git|symlink)`))
    })
  }
  for (const [what, text] of BAD_GITMODULES) {
    test(`.gitmodules with ${what} is fsck-failed`, async () => {
      const oid = w.forge.object('blob', text)
      const { commit, bytes } = withTree([{ mode: '100644', name: '.gitmodules', oid }], [oid])
      await refused(bytes, commit, 'fsck-failed', /object [0-9a-f]{40}: gitmodules/)
    })
  }
  for (const [what, recipe] of BAD_COMMITS) {
    test(`a commit with ${what} is fsck-failed, naming it`, async () => {
      const commit = w.forge.object('commit', recipe(goodTree, w.base))
      await refused(w.forge.bundle({ tip: commit, prerequisites: [w.base], objects: [commit] }), commit, 'fsck-failed', `object ${commit}`)
    })
  }
  test('a bad tree deep in the history is found, though the tip is good', async () => {
    const { tree, commit } = withTree([{ mode: '100644', name: '.git' }])
    const top = w.forge.commit(goodTree, commit)
    const blob = w.forge.object('blob', 'good\n')
    await refused(w.forge.bundle({ tip: top, prerequisites: [w.base], objects: [top, commit, tree, blob] }), top, 'fsck-failed', `object ${tree}: hasDotgit`)
  })
})

describe('policy', () => {
  const link = (name: string, target: string): { commit: string; bytes: Buffer } => {
    const oid = w.forge.object('blob', target)
    return withTree([{ mode: '120000', name, oid }], [oid])
  }
  test('a gitlink', async () => {
    const { commit, bytes } = withTree([{ mode: '160000', name: 'sub', oid: w.base }])
    await refused(bytes, commit, 'fsck-failed', `object ${w.base}: gitlink: "sub"`)
  })
  test('a .gitmodules that git itself likes, in a commit below the tip', async () => {
    const oid = w.forge.object('blob', '[submodule "a"]\n\tpath = a\n\turl = https://example.invalid/a\n')
    const below = w.forge.commit(w.forge.tree([{ mode: '100644', name: '.gitmodules', oid }]), w.base)
    const top = w.forge.commit(goodTree, below)
    await refused(w.forge.honest(top, w.base), top, 'fsck-failed', `object ${oid}: gitmodulesChanged`)
  })
  for (const target of ['/etc/passwd', '..', '../x', 'a/../..', 'a/b/../../../x', '.git/hooks', 'GIT~1', '']) {
    test(`a link to ${JSON.stringify(target)}`, async () => {
      const { commit, bytes } = link('link', target)
      await refused(bytes, commit, 'fsck-failed', /symlinkLeavesTree: "link"/)
    })
  }
  test('a link with odd characters in its path', async () => {
    const { commit, bytes } = link('a\n:000000 120000 \t"ü', '../x')
    await refused(bytes, commit, 'fsck-failed', /symlinkLeavesTree/)
  })
  test('links that stay are fine', async () => {
    const { commit, bytes } = link('link-fine', './sub/file')
    await w.push('t-links', bytes, commit)
    expect(tip('t-links')).toBe(commit)
  })
})

describe('the bundle itself', () => {
  const one = (): { commit: string; bytes: Buffer } => {
    const commit = w.forge.commit(goodTree, w.base)
    return { commit, bytes: w.forge.honest(commit, w.base) }
  }
  test('another first line, no end of the header, no pack', async () => {
    const { commit, bytes } = one()
    const v3 = Buffer.from(bytes.toString('latin1').replace('# v2 git bundle', '# v3 git bundle\n@object-format=sha1'), 'latin1')
    for (const bad of [
      v3,
      Buffer.from('gitdir: /work\n'),
      Buffer.alloc(0),
      Buffer.from(`# v2 git bundle\n${commit} x`),
      Buffer.concat([Buffer.from('\n'), bytes]),
      Buffer.from(`# v2 git bundle\n${commit} x\n\nJUNK`),
    ]) {
      await refused(bad, commit, 'bundle-invalid')
    }
  })
  test('no ref, two refs, 50 000 refs, a tip that is not the commit named', async () => {
    const { commit } = one()
    const refs = (count: number): string[] => Array.from({ length: count }, (_, n) => `${commit} refs/heads/x${String(n)}`)
    for (const count of [0, 2, 50_000]) await refused(w.forge.bundle({ tip: commit, refs: refs(count), objects: [commit] }), commit, 'bundle-invalid')
    await refused(w.forge.honest(commit, w.base), w.base, 'bundle-invalid', /is not the commit/)
  })
  test('a corrupt and a truncated pack', async () => {
    const { commit, bytes } = one()
    const corrupt = Buffer.from(bytes)
    corrupt.writeUInt8(corrupt.readUInt8(bytes.length - 30) ^ 0xff, bytes.length - 30)
    await refused(corrupt, commit, 'bundle-invalid')
    await refused(bytes.subarray(0, bytes.length - 25), commit, 'bundle-invalid')
  })
  test('a prerequisite that is missing, one that is no commit', async () => {
    const lone = w.forge.commit(goodTree)
    const top = w.forge.commit(goodTree, lone)
    await refused(w.forge.bundle({ tip: top, prerequisites: [lone], objects: [top] }), top, 'missing-prerequisites', lone)
    await refused(w.forge.bundle({ tip: top, prerequisites: [goodTree], objects: [top] }), top, 'missing-prerequisites', goodTree)
  })
  test('an undeclared prerequisite, a hole', async () => {
    const lone = w.forge.commit(goodTree, w.base)
    const top = w.forge.commit(goodTree, lone)
    await refused(w.forge.bundle({ tip: top, objects: [top] }), top, 'missing-prerequisites', lone)
    const blob = w.forge.object('blob', 'not sent\n')
    const tree = w.forge.tree([{ mode: '100644', name: 'hole', oid: blob }])
    const holed = w.forge.commit(tree, w.base)
    await refused(w.forge.bundle({ tip: holed, prerequisites: [w.base], objects: [holed, tree] }), holed, 'missing-prerequisites', blob)
  })
  test('a tag, a tree and a blob as tip, a tip that is not there', async () => {
    const { commit } = one()
    const tag = w.forge.object('tag', `object ${commit}\ntype commit\ntag x\ntagger a <a@a> 1700000000 +0000\n\nx\n`)
    const blob = w.forge.object('blob', 'tip\n')
    await refused(w.forge.bundle({ tip: tag, prerequisites: [w.base], objects: [tag, commit] }), tag, 'bundle-invalid', /no commit/)
    await refused(w.forge.bundle({ tip: blob, objects: [blob] }), blob, 'bundle-invalid', /no commit/)
    await refused(w.forge.bundle({ tip: goodTree, objects: [goodTree] }), goodTree, 'bundle-invalid', /no commit/)
    await refused(w.forge.bundle({ tip: 'f'.repeat(40), objects: [blob] }), 'f'.repeat(40), 'bundle-invalid', /lacks its own tip/)
  })
  test('ref names are ignored, whatever they are', async () => {
    const commit = w.forge.commit(goodTree, w.base)
    const refs = [`${commit} --upload-pack=touch /tmp/x ../../x refs/heads/main`]
    const before = w.git(w.repository, 'for-each-ref')
    await w.push('t-names', w.forge.bundle({ tip: commit, prerequisites: [w.base], refs, objects: [commit] }), commit)
    expect(w.git(w.repository, 'for-each-ref').split('\n').length).toBe(before.split('\n').length + 1)
    expect(tip('t-names')).toBe(commit)
  })
})

describe('limits', () => {
  test('a small bundle of a huge blob is bundle-too-big; below the limit it lands', async () => {
    for (const [sizeBytes, fits] of [
      [256 * 1024 * 1024, false],
      [1024 * 1024, true],
    ] as const) {
      const zeros = packOfZeros(sizeBytes)
      w.git(w.clone, 'config', 'core.compression', '1')
      w.forge.git('config', 'core.bigFileThreshold', '1m')
      const blob = w.gitInput(w.clone, Buffer.alloc(sizeBytes), 'hash-object', '-w', '--stdin')
      expect(blob).toBe(zeros.oid)
      const tree = w.forge.tree([{ mode: '100644', name: 'zeros', oid: blob }])
      const commit = w.forge.commit(tree, w.base)
      const bytes = w.forge.bundle({ tip: commit, prerequisites: [w.base], objects: [commit, tree, blob] })
      expect(bytes.length).toBeLessThan(4 * 1024 * 1024)
      if (!fits) await refused(bytes, commit, 'bundle-too-big')
      else expect(await w.push('t-zeros', bytes, commit)).toMatchObject({ commit })
    }
  })
  test('more objects than allowed', async () => {
    const commit = w.forge.commit(goodTree, w.base)
    const blobs = Array.from({ length: 12 }, (_, n) => w.forge.object('blob', `blob ${String(n)}`))
    const bytes = w.forge.bundle({ tip: commit, prerequisites: [w.base], objects: [commit, ...blobs] })
    const upTo = (pushObjects: number): Partial<IntakeDeps> => ({ limits: () => ({ pushObjects, pushUnpackedBytes: 1 << 26 }) })
    await expect(w.push('t-many', bytes, commit, { intake: upTo(12) })).rejects.toMatchObject({ code: 'bundle-too-big' })
    expect(await w.push('t-many', bytes, commit, { intake: upTo(13) })).toMatchObject({ commit })
  })
  test('checks that take too long', async () => {
    const commit = w.forge.commit(goodTree, w.base)
    await expect(w.push('t-slow', w.forge.honest(commit, w.base), commit, { intake: { checkTimeoutMs: 1 } })).rejects.toMatchObject({ code: 'bundle-too-big' })
  })
})

describe('history', () => {
  test('a lone history is unrelated', async () => {
    const lone = w.forge.commit(goodTree)
    await refused(w.forge.honest(lone), lone, 'unrelated-history')
  })
  test('what is no fast-forward is refused with the current tip, also when it is an ancestor', async () => {
    const one = w.forge.commit(goodTree, w.base)
    const two = w.forge.commit(goodTree, one)
    await w.push('t-ff', w.forge.honest(two, w.base), two)
    const other = w.forge.commit(w.forge.tree([{ mode: '100644', name: 'other' }]), w.base)
    await refused(w.forge.honest(other, w.base), other, 'not-fast-forward', two, 't-ff')
    await refused(w.forge.honest(one, w.base), one, 'not-fast-forward', two, 't-ff')
    const three = w.forge.commit(goodTree, two)
    await w.push('t-ff', w.forge.honest(three, two), three)
    expect(tip('t-ff')).toBe(three)
  })
  test('two pushes at once: one lands, the other is judged against it', async () => {
    const [a, b] = ['a', 'b'].map((name) => w.forge.commit(w.forge.tree([{ mode: '100644', name }]), w.base))
    if (a === undefined || b === undefined) throw new Error('two commits')
    const [bytesA, bytesB] = [w.forge.honest(a, w.base), w.forge.honest(b, w.base)]
    const results = await Promise.allSettled([w.push('t-two', bytesA, a), w.push('t-two', bytesB, b)])
    const won = results.findIndex(({ status }) => status === 'fulfilled')
    expect(results[1 - won]).toMatchObject({ status: 'rejected', reason: { code: 'not-fast-forward' } })
    expect(tip('t-two')).toBe([a, b][won])
  })
  test('a task that is closed when the row is to be written gets its ref back', async () => {
    const commit = w.forge.commit(goodTree, w.base)
    const record = (): Promise<string> => Promise.reject(new AppError('task-closed', 't-late is closed'))
    await expect(w.push('t-late', w.forge.honest(commit, w.base), commit, { rows: { record } })).rejects.toMatchObject({ code: 'task-closed' })
    expect(tip('t-late')).toBe('')
    await w.push('t-late', w.forge.honest(commit, w.base), commit)
    expect(tip('t-late')).toBe(commit)
  })
})

describe('a ref that moved although its move failed, as when its directory cannot be synced', () => {
  const advance = async (step: RefStep): Promise<boolean> => {
    expect(await advanceRef(step)).toBe(true)
    throw Object.assign(new Error('EMFILE: open'), { code: 'EMFILE' })
  }
  const files = (): unknown => Object.entries(snapshot(w.repository)).filter(([, what]) => !what.startsWith('40'))

  test('goes back, and its objects with it', async () => {
    const one = w.forge.commit(goodTree, w.base)
    const before = files()
    await expect(w.push('t-unsynced', w.forge.honest(one, w.base), one, { intake: { advance } })).rejects.toThrow('EMFILE')
    expect(files()).toEqual(before)
    await w.push('t-unsynced', w.forge.honest(one, w.base), one) // the control
    const two = w.forge.commit(goodTree, one)
    await expect(w.push('t-unsynced', w.forge.honest(two, one), two, { intake: { advance } })).rejects.toThrow('EMFILE')
    expect(tip('t-unsynced')).toBe(one)
  })
  test('keeps its objects when it cannot go back: the repository stays whole', async () => {
    const one = w.forge.commit(goodTree, w.base)
    const runHelper: IntakeDeps['runHelper'] = (request) =>
      request.command.includes('update-ref') ? Promise.reject(new Error('EMFILE')) : w.runHelper(request)
    await expect(w.push('t-stuck', w.forge.honest(one, w.base), one, { intake: { advance, runHelper } })).rejects.toThrow('EMFILE')
    expect(tip('t-stuck')).toBe(one)
    expect(w.git(w.repository, 'fsck', '--full', '--strict', '--no-dangling')).toBe('')
  })
})

test('a repository that is gone is no refusal of the peer', async () => {
  const aside = `${w.repository}.aside`
  renameSync(w.repository, aside)
  mkdirSync(w.repository)
  const commit = w.forge.commit(goodTree, w.base)
  await expect(w.push('t-1', w.forge.honest(commit, w.base), commit)).rejects.not.toBeInstanceOf(AppError)
  renameSync(w.repository, `${w.repository}.empty`)
  renameSync(aside, w.repository)
})
