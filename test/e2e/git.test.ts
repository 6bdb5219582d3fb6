import { describe, expect, test } from 'vitest'
import { Company } from '../helpers/company.ts'
import { until } from '../helpers/world.ts'

interface PushRow {
  readonly id: string
  readonly task: string
  readonly commit: string
  readonly instance: string
}

const rejected = (destination: string, code: string): RegExp => new RegExp(`^ ! \\[remote rejected\\] \\S+ -> ${destination} \\(${code}: .+\\)$`, 'm')

describe('plain git in a session', () => {
  test('pushes to a task: a new branch, then old..new, then nothing to do', async () => {
    await using company = await Company.open()
    await company.task('t-1')
    const first = await company.push('coder', 't-1')
    expect(first.out).toContain('To mosaic::stack\n * [new branch]      HEAD -> t-1')
    expect(first.out).toContain('remote: push p1 to task t-1')
    const second = await company.push('coder', 't-1')
    expect(second.out).toContain(`   ${first.commit.slice(0, 7)}..${second.commit.slice(0, 7)}  HEAD -> t-1`)
    expect((await company.inside('coder', 'git push mosaic HEAD:t-1')).out).toBe('Everything up-to-date')
    expect((await company.inside('coder', 'git rev-parse refs/remotes/mosaic/t-1')).out).toBe(second.commit)
    expect(await company.must<PushRow[]>(['push', 'list'])).toMatchObject([{ commit: first.commit }, { commit: second.commit, latest: true }])
  })

  test('pushes from a detached HEAD, by object id and with -q, as origin too', async () => {
    await using company = await Company.open()
    await company.task('t-1')
    const ran = await company.inside(
      'coder',
      'git checkout -q --detach && git commit -q --allow-empty -m on && git push -q origin HEAD:t-1 && git commit -q --allow-empty -m on && git push -q mosaic $(git rev-parse HEAD):refs/heads/t-1',
    )
    expect(ran).toEqual({ code: 0, out: '' })
    expect(await company.must(['push', 'list'])).toHaveLength(2)
  })

  test('clones, by the name and by the path of the root, and finds what it may see', async () => {
    await using company = await Company.open({ instances: ['coder', 'reviewer'] })
    for (const [task, assignee] of [
      ['t-1', 'coder'],
      ['t-2', 'coder-2'],
    ] as const)
      await company.task(task, assignee)
    const { commit } = await company.push('coder', 't-1')
    const main = company.git(company.project, 'rev-parse', 'main')
    const own = await company.inside('coder', 'git ls-remote --heads mosaic')
    expect(own.out.split('\n').sort()).toEqual([`${main}\trefs/heads/main`, `${commit}\trefs/heads/t-1`].sort())
    const cloned = await company.inside(
      'reviewer',
      'git clone -q mosaic::stack /tmp/c && cd /tmp/c && git rev-parse HEAD origin/t-1 && git symbolic-ref --short HEAD && git fsck --strict',
    )
    expect(cloned).toEqual({ code: 0, out: `${main}\n${commit}\nmain` })
    const byPath = await company.inside('reviewer', `git init -q /tmp/n && cd /tmp/n && git fetch -q ${company.project}/.git t-1 && git rev-parse FETCH_HEAD`)
    expect(byPath).toEqual({ code: 0, out: commit })
    expect((await company.inside('reviewer', 'git fetch -q mosaic t-1 && git rev-parse FETCH_HEAD && git log --oneline FETCH_HEAD | wc -l')).out).toBe(
      `${commit}\n2`,
    )
  })

  test('is refused with code and reason, as git says it', async () => {
    await using company = await Company.open({ instances: ['coder', 'reviewer'], limits: { pushBytes: '64K' } })
    await company.task('t-1')
    await company.task('t-2', 'coder-2')
    await company.task('t-3')
    const { commit } = await company.push('coder', 't-1')
    await company.must(['task', 'close', 't-3'])
    const refused = async (spec: string, instance = 'coder'): Promise<string> => {
      const { code, out } = await company.inside(instance, `git push mosaic ${spec}`)
      expect(code, out).not.toBe(0)
      return out
    }
    for (const to of ['main', 'refs/tags/t-1', 'refs/heads/work/t-1', 'refs/mosaic/approved/t-1', 'T_1']) {
      expect(await refused(`HEAD:${to.includes('/') || to === 'main' ? to : `refs/heads/${to}`}`)).toMatch(
        /^ ! \[remote rejected\] .* \(bad-destination: .+\)$/m,
      )
    }
    expect(await refused(':t-1')).toMatch(/^ ! \[remote rejected\] t-1 \(bad-destination: nothing is deleted\)$/m)
    expect(await refused('HEAD:t-9')).toMatch(rejected('t-9', 'task-not-found'))
    expect(await refused('HEAD:refs/heads/t-2')).toMatch(rejected('t-2', 'not-permitted'))
    expect(await refused('HEAD:t-3')).toMatch(rejected('t-3', 'task-closed'))
    expect(await refused('HEAD:t-1', 'reviewer')).toMatch(rejected('t-1', 'not-permitted'))
    for (const force of ['', '+']) {
      const out = await refused(`${force}HEAD~1:t-1`)
      expect(out).toMatch(rejected('t-1', 'not-fast-forward'))
      expect(out).toContain(commit)
    }
    expect((await company.inside('coder', 'git tag -a -m v v1 && git push mosaic v1:t-1')).out).toMatch(rejected('t-1', 'bundle-invalid'))
    const big = 'head -c 100000 /dev/urandom > big && git add big && git commit -q -m big && git push mosaic HEAD:t-1'
    expect((await company.inside('coder', big)).out).toMatch(rejected('t-1', 'bundle-too-big'))
    expect((await company.inside('coder', 'git clone mosaic::nothing /tmp/x')).out).toContain('fatal: remote error: project-not-found: ')
    expect(await company.must(['push', 'list'])).toHaveLength(1)
  })

  test('without the grants it has no way in, and is told so', async () => {
    await using company = await Company.open({ instances: ['pm', 'coder'] })
    await company.task('t-1', 'pm')
    expect((await company.push('pm', 't-1')).out).toMatch(rejected('t-1', 'not-permitted'))
    expect((await company.inside('pm', 'git fetch origin')).out).toContain('fatal: remote error: not-permitted: ')
    expect(await company.tool('pm', 'push', { task: 't-1' })).toMatchObject({ ok: false, error: 'not-permitted' })
    await company.task('t-2')
    expect((await company.push('coder', 't-2')).code).toBe(0)
  })

  test('keeps its own configuration, and what the role sets by environment', async () => {
    await using company = await Company.open({ coderEnv: { GIT_CONFIG_COUNT: '1', GIT_CONFIG_KEY_0: 'user.nick', GIT_CONFIG_VALUE_0: 'role' } })
    await company.task('t-1')
    const ran = await company.inside(
      'coder',
      'git config --global user.own agent && git config user.nick && git config user.own && git fetch -q origin && git rev-parse -q --verify origin/main',
    )
    expect(ran).toEqual({ code: 0, out: `role\nagent\n${company.git(company.project, 'rev-parse', 'main')}` })
  })

  test('moves more than a socket holds, and shows how far it is where it is asked to', async () => {
    await using company = await Company.open({ instances: ['coder', 'reviewer'] })
    await company.task('t-1')
    const pushed = await company.inside(
      'coder',
      'head -c 20000000 /dev/urandom > big && git add big && git commit -q -m big && git push --progress mosaic HEAD:t-1',
    )
    expect(pushed.code, pushed.out).toBe(0)
    expect(pushed.out).toMatch(/Writing objects: 100%/)
    const fetched = await company.inside('reviewer', 'git fetch --progress mosaic t-1 && git show FETCH_HEAD:big | wc -c')
    expect(fetched.out).toMatch(/Receiving objects: 100%/)
    expect(fetched.out).toMatch(/^20000000$/m)
  })
})

describe('pushes', () => {
  test('of two coders at once both land, whole', async () => {
    await using company = await Company.open({ instances: ['coder', 'coder-2'] })
    await company.task('t-1')
    await company.task('t-2', 'coder-2')
    const both = await Promise.all([company.push('coder', 't-1', { text: 'a' }), company.push('coder-2', 't-2', { text: 'b' })])
    expect(both.map(({ code }) => code)).toEqual([0, 0])
    expect(both.map((_, n) => company.bare('rev-parse', `work/t-${String(n + 1)}`))).toEqual(both.map(({ commit }) => commit))
    expect(company.bare('fsck', '--strict', '--no-dangling')).toBe('')
  })

  test('of stacked tasks land each on the other; who judges fetches all, another coder none, even by id', async () => {
    await using company = await Company.open({ instances: ['coder', 'coder-2', 'reviewer'] })
    for (const task of ['t-1', 't-2']) await company.task(task)
    await company.task('t-3', 'coder-2')
    const pushed = [
      await company.push('coder', 't-1'),
      await company.push('coder', 't-2'),
      await company.push('coder', 't-1'),
      await company.push('coder', 't-2'),
    ]
    expect(pushed.map(({ code }) => code)).toEqual([0, 0, 0, 0])
    const tips = [pushed[2]?.commit ?? '', pushed[3]?.commit ?? '']
    const seen = await company.inside('reviewer', 'git fetch -q mosaic && git rev-parse mosaic/t-1 mosaic/t-2 && git fsck --strict --no-dangling')
    expect(seen).toEqual({ code: 0, out: tips.join('\n') })
    const taken = await company.inside('coder-2', `git fetch -q mosaic && git cat-file -e ${tips[0] ?? ''}`)
    expect(taken.code).not.toBe(0)
    expect((await company.push('coder-2', 't-3')).code).toBe(0)
    expect(company.bare('fsck', '--strict', '--no-dangling')).toBe('')
  })

  test('and fetches are tools too', async () => {
    await using company = await Company.open({ instances: ['coder', 'reviewer'] })
    await company.task('t-1')
    const { out: commit } = await company.inside('coder', 'git commit -q --allow-empty -m on && git rev-parse HEAD')
    expect(await company.tool('coder', 'push', { task: 't-1' })).toEqual({ push: 'p1', ref: 'refs/heads/work/t-1', commit })
    expect(await company.tool('coder', 'push', { task: 't-1', commit: 'HEAD~1' })).toMatchObject({ ok: false, error: 'not-fast-forward' })
    expect(await company.tool('coder', 'push', {})).toMatchObject({ ok: false, error: 'invalid-request' })
    expect(await company.tool('coder', 'push', { task: 't-1', force: true })).toMatchObject({ ok: false, error: 'invalid-request' })
    expect(await company.tool('coder', 'push', { task: 't-1', commit: '--all' })).toMatchObject({ ok: false, error: 'bundle-invalid' })
    const fetched = await company.tool('reviewer', 'fetch', { task: 't-1' })
    expect(fetched).toMatchObject({ project: 'stack', tips: { 'refs/remotes/mosaic/t-1': commit } })
    expect((await company.inside('reviewer', 'git cat-file -t mosaic/t-1')).out).toBe('commit')
    expect(await company.tool('reviewer', 'fetch', { task: 't-9' })).toMatchObject({ ok: false, error: 'task-not-found' })
  })

  test('say to the founder which files act by themselves; a diff reaches a terminal escaped', async () => {
    await using company = await Company.open()
    await company.task('t-1')
    await company.push('coder', 't-1', { file: '.husky/pre-commit', text: '\u001b[8mhidden' })
    const shown = await company.must<{ files: string[]; acting: string[] }>(['push', 'show', 'p1'])
    expect([shown.files, shown.acting]).toEqual([['.husky/pre-commit'], ['.husky/pre-commit']])
    expect((await company.run(['push', 'show', 'p1'])).stdout).toContain('  .husky/pre-commit  (acts by itself once checked out or installed)')
    const diff = await company.run(['push', 'diff', 'p1'])
    expect(diff.stdout).toContain('+\\x1b[8mhidden')
    expect(diff.stderr).toContain('.husky/pre-commit')
    expect((await company.json(['push', 'show', 'p9'])).error.code).toBe('push-not-found')
  })

  test.each(['push.objects', 'push.ref', 'push.row'])('cut off at %s leave refs that are what the rows say, and can be made again', async (failpoint) => {
    await using company = await Company.open()
    await company.task('t-1')
    const before = await company.push('coder', 't-1')
    await company.begin(['coder'], { MOSAIC_FAILPOINT: failpoint })
    await expect(company.inside('coder', 'git commit -q --allow-empty -m cut && git push mosaic HEAD:t-1')).rejects.toThrow()
    expect(await company.begin([])).toBeNull()
    expect(company.bare('rev-parse', 'work/t-1')).toBe(before.commit)
    // the message that was cut off is given to the next run, which pushes again
    await company.must(['launch', 'coder'])
    const list = (): Promise<PushRow[]> => company.must<PushRow[]>(['push', 'list'])
    await until('the push is there', async () => (await list()).length === 2)
    const rows = await list()
    expect(company.bare('rev-parse', 'work/t-1')).toBe(rows[1]?.commit)
    expect(company.bare('fsck', '--strict', '--no-dangling')).toBe('')
  })
})
