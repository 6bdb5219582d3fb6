import { chmodSync, existsSync, writeFileSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { Company } from '../helpers/company.ts'
import { until } from '../helpers/world.ts'

interface ReviewRow {
  readonly request: string
  readonly state: string
  readonly commit: string
}
interface RepoRow {
  readonly main: string | null
  readonly mainDiverged: boolean
  readonly tasks: number
}

const refsOf = (company: Company, dir: string): string => company.git(dir, 'for-each-ref', '--format=%(refname) %(objectname)')

/** A company with one push of t-1, and its commit. */
async function pushed(instances: readonly string[] = ['coder']): Promise<{ company: Company; commit: string }> {
  const company = await Company.open({ instances })
  await company.task('t-1')
  return { company, commit: (await company.push('coder', 't-1')).commit }
}

/** Asks for a review and approves it as the founder. */
async function approve(company: Company, task = 't-1'): Promise<void> {
  await company.tool('coder', 'request_review', { task })
  const open = (await company.must<ReviewRow[]>(['review', 'list', '--task', task])).find((row) => row.state === 'open')
  await company.must(['review', 'approve', open?.request ?? ''])
}

describe('a review', () => {
  test('goes from the push to the close; the founder may judge, and override', async () => {
    const { company, commit } = await pushed(['coder', 'reviewer'])
    await using _ = company
    const asked = await company.tool('coder', 'request_review', { task: 't-1' })
    const request = String(asked.request)
    expect((await company.json(['task', 'close', 't-1'])).error.code).toBe('not-approved')
    expect((await company.json(['review', 'approve', request, '--commit', '0'.repeat(40)])).code).toBe(2)
    expect(await company.tool('reviewer', 'verdict', { request, commit, verdict: 'reject', note: 'no' })).toMatchObject({ state: 'rejected' })
    expect((await company.json(['review', 'approve', request])).error.code).toBe('already-judged')
    expect((await company.json(['task', 'close', 't-1'])).code).toBe(6)
    await approve(company)
    expect(company.bare('rev-parse', 'refs/mosaic/approved/t-1')).toBe(commit)
    expect(await company.must(['task', 'close', 't-1'])).toMatchObject({ state: 'closed', verdict: 'approve' })

    await company.task('t-2')
    await company.push('coder', 't-2')
    expect(await company.must(['task', 'close', 't-2', '--override', '--reason', 'late'])).toMatchObject({ state: 'closed', verdict: null })
    const overrides = await company.must<{ subject: string; actor: { kind: string }; body: object }[]>(['trail', '--kind', 'override'])
    expect(overrides).toMatchObject([{ subject: 't-2', actor: { kind: 'founder' }, body: { push: 'p2', reason: 'late' } }])
  })

  test('whose approval comes while the host drains has its ref at once', async () => {
    const { company, commit } = await pushed()
    await using _ = company
    const { request } = await company.tool('coder', 'request_review', { task: 't-1' })
    const founder = await company.founder()
    const id = await founder.send('coder', 'WAIT 60000')
    await until('its turn runs', async () => (await founder.message(id)).state === 'delivered')
    await founder.client.call('shutdown', { drainMs: 60_000 })
    await company.must(['review', 'approve', String(request)])
    expect(company.bare('rev-parse', 'refs/mosaic/approved/t-1')).toBe(commit)
    // the drain would go on: who asks a second time waits no longer
    await founder.client.call('shutdown', {})
    expect(await company.begin([])).toBe(0)
  })

  test('whose approval was cut off before its ref is put right by the next host', async () => {
    const { company, commit } = await pushed()
    await using _ = company
    await company.begin(['coder'], { MOSAIC_FAILPOINT: 'review.ref' })
    await expect(approve(company)).rejects.toThrow()
    expect(await company.begin([])).toBeNull()
    expect(company.bare('rev-parse', 'refs/mosaic/approved/t-1')).toBe(commit)
  })
})

describe('task fetch', () => {
  test('brings a branch and nothing else, runs nothing, and says what is not approved', async () => {
    const { company, commit } = await pushed()
    await using _ = company
    const ran = join(company.root, 'ran')
    for (const hook of ['reference-transaction', 'post-checkout', 'post-merge']) {
      const path = join(company.project, '.git', 'hooks', hook)
      await mkdir(join(company.project, '.git', 'hooks'), { recursive: true })
      writeFileSync(path, `#!/bin/sh\necho ${hook} >> ${ran}\n`)
      chmodSync(path, 0o755)
    }
    const refused = await company.json(['task', 'fetch', 't-1'])
    expect([refused.code, refused.error.code, refused.error.hint]).toEqual([6, 'not-approved', 'mosaic task fetch t-1 --unapproved'])
    const unapproved = await company.run(['task', 'fetch', 't-1', '--unapproved'])
    expect(unapproved.stderr).toContain('push p1 of t-1 is not approved')
    expect(unapproved.stdout).toContain(`mosaic/t-1 is ${commit.slice(0, 12)} (push p1, not approved)`)
    expect(refsOf(company, company.project).split('\n')).toEqual([expect.stringMatching(/^refs\/heads\/main /), `refs/heads/mosaic/t-1 ${commit}`])
    expect(company.git(company.project, 'status', '--porcelain')).toBe('')
    expect(existsSync(join(company.project, '.git', 'FETCH_HEAD'))).toBe(false)
    expect(existsSync(ran)).toBe(false)
    company.git(company.project, 'branch', 'control')
    expect(existsSync(ran)).toBe(true)
  })

  test('moves its branch back to what was approved, but never over commits of the founder, nor one that is checked out', async () => {
    const { company, commit } = await pushed()
    await using _ = company
    await approve(company)
    const later = await company.push('coder', 't-1')
    const branch = (): string => company.git(company.project, 'rev-parse', 'mosaic/t-1')
    await company.must(['task', 'fetch', 't-1', '--unapproved'])
    expect(branch()).toBe(later.commit)
    expect(await company.must(['task', 'fetch', 't-1'])).toMatchObject({ commit, approved: true, branch: 'mosaic/t-1' })
    expect(branch()).toBe(commit)

    const tree = join(company.root, 'tree')
    company.git(company.project, 'worktree', 'add', '-q', tree, 'mosaic/t-1')
    expect((await company.json(['task', 'fetch', 't-1', '--unapproved'])).error.code).toBe('branch-checked-out')
    company.git(tree, 'commit', '-q', '--allow-empty', '-m', 'mine')
    const mine = branch()
    company.git(company.project, 'worktree', 'remove', tree)
    expect((await company.json(['task', 'fetch', 't-1'])).error.code).toBe('not-fast-forward')
    expect(branch()).toBe(mine)
  })

  test('goes into the repository of the current directory, and into no clone of a session', async () => {
    const { company, commit } = await pushed()
    await using _ = company
    const own = join(company.root, 'own')
    company.git(company.root, 'clone', '-q', company.project, own)
    const fetch = (cwd: string): ReturnType<Company['json']> => company.json(['task', 'fetch', 't-1', '--unapproved'], { cwd })
    await mkdir(join(own, 'below'))
    expect((await fetch(join(own, 'below'))).code).toBe(0)
    expect(company.git(own, 'rev-parse', 'mosaic/t-1')).toBe(commit)
    expect(refsOf(company, company.project)).not.toContain('mosaic/')
    expect((await fetch(join(company.data, 'envs', 'acme', 'coder', 'workspace', 'stack'))).error.code).toBe('usage')
    expect((await fetch(join(company.data, 'git', 'acme', 'stack.git'))).error.code).toBe('usage')
  })
})

test('repo list and sync: a rewritten root leaves main where it is until it is forced', async () => {
  const { company } = await pushed()
  await using _ = company
  const list = (): Promise<RepoRow[]> => company.must<RepoRow[]>(['repo', 'list'])
  const before = company.git(company.project, 'rev-parse', 'main')
  expect(await list()).toMatchObject([{ project: 'stack', main: before, mainDiverged: false, tasks: 1, problem: null }])
  company.git(company.project, 'commit', '-q', '--amend', '-m', 'rewritten')
  const rewritten = company.git(company.project, 'rev-parse', 'main')
  expect(await list()).toMatchObject([{ main: before, mainDiverged: true }])
  const stays = await company.run(['repo', 'sync', 'stack'])
  expect([stays.code, stays.stderr]).toEqual([6, expect.stringContaining('hint: mosaic repo sync stack --force')])
  expect(company.bare('rev-parse', 'main')).toBe(before)
  expect(await company.must(['repo', 'sync', 'stack', '--force'])).toMatchObject([{ main: rewritten, mainDiverged: false }])
  expect(company.bare('rev-parse', 'main')).toBe(rewritten)
  expect((await company.json(['repo', 'sync', 'nothing'])).error.code).toBe('project-not-found')
  expect((await company.run(['repo', 'sync', '--force'])).code).toBe(2)
})
