import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { Company } from '../helpers/company.ts'
import { World } from '../helpers/world.ts'

const dry = (args: readonly string[]): readonly string[] => [...args, '--dry-run']

/** The dry run refuses as the real one does. */
async function expectSameRefusal(world: World, args: readonly string[]): Promise<void> {
  const [first, second] = [await world.json(dry(args)), await world.json(args)]
  expect([args, first.code, first.error]).toEqual([args, second.code, second.error])
  expect(second.code).toBeGreaterThan(0)
}

describe('a dry run', () => {
  test('of a launch has no run, and says what its env root would be', async () => {
    await using world = new World({ project: true })
    await world.start()
    const launch = (...more: string[]): Promise<unknown> => world.must(dry(['launch', 'coder', ...more]))
    expect(await launch()).toMatchObject({ run: null, instance: 'coder', env: 'created' })
    expect((await world.run(dry(['launch', 'coder', '-q']))).stdout).toBe('')
    expect(existsSync(join(world.data, 'envs', 'acme'))).toBe(false)
    const { run } = await world.must<{ run: string }>(['launch', 'coder'])
    await expectSameRefusal(world, ['launch', 'coder'])
    await world.must(['stop', 'coder'])
    expect(await launch()).toMatchObject({ run: null, env: 'kept' })
    expect(await launch('--continue', run)).toMatchObject({ env: 'continued' })
    expect(await launch('--continue', run.slice(0, 6))).toMatchObject({ env: 'continued' })
    expect(await launch('--fresh')).toMatchObject({ env: 'reset' })
    expect(await launch('--task', 'none').catch(String)).toContain('task-not-found')
    await expectSameRefusal(world, ['launch', 'coder', '--continue', 'no-such-run'])
    expect(await world.must(['ps'])).toEqual([])
  })

  test('of an end ends nothing, and refuses as the real one', async () => {
    await using company = await Company.open({ instances: ['coder'] })
    const [row] = await company.must<{ run: string }[]>(['ps'])
    const run = row?.run ?? ''
    for (const args of [
      ['stop', 'coder'],
      ['stop', run.slice(0, 8)],
      ['stop', '--all'],
      ['kill', run],
    ])
      expect(JSON.stringify(await company.must(dry(args)))).toContain(run)
    const { pid } = await company.must<{ pid: number }>(['bus', 'status'])
    for (const verb of ['stop', 'restart'])
      expect(await company.must(dry(['bus', verb]))).toEqual({ pid, business: 'acme', sessions: [{ run, instance: 'coder' }] })
    expect(await company.must(['ps'])).toHaveLength(1)
    // an instance is no run, and whoever names one is told its run
    for (const verb of ['show', 'logs', 'kill', 'wait', 'transcript']) {
      const { code, error } = await company.json([verb, 'coder'])
      expect([verb, code, error]).toMatchObject([verb, 4, { code: 'run-not-found', hint: `name the run: ${run}`, data: { run } }])
    }
    for (const args of [
      ['stop', 'reviewer'],
      ['stop', 'r000000000000'],
      ['kill', 'r000000000000'],
      ['env', 'release', 'coder'],
      ['env', 'release', 'none'],
    ])
      await expectSameRefusal(company, args)
  })

  test('of task close judges alone; ids of tasks may be cut short', async () => {
    await using company = await Company.open({ instances: ['coder'] })
    for (const id of ['header', 'headline', 'footer']) await company.task(id)
    await company.push('coder', 'footer')
    await expectSameRefusal(company, ['task', 'close', 'footer'])
    const override = ['task', 'close', 'foot', '--override', '--reason', 'seen']
    expect(await company.must(dry(override))).toMatchObject({ id: 'footer', state: 'open' })
    expect(await company.must(['task', 'show', 'foo'])).toMatchObject({ id: 'footer', state: 'open' })
    expect(await company.must(override)).toMatchObject({ id: 'footer', state: 'closed' })
    const ambiguous = await company.json(['task', 'show', 'head'])
    expect([ambiguous.code, ambiguous.error]).toMatchObject([2, { code: 'task-ambiguous', data: { tasks: ['header', 'headline'] } }])
    await expectSameRefusal(company, ['task', 'close', 'none'])
    expect(await company.must(['timeline', '--task', 'foot'])).not.toEqual([])
  })

  test('of a restore verifies and writes nothing', async () => {
    await using world = new World({ project: true })
    const host = await world.start()
    const file = join(world.root, 'b.tar')
    const { head } = await world.must<{ head: string }>(['backup', file])
    await host.stop()
    const second = join(world.root, 'd2')
    expect(await world.must(dry(['restore', file, '--data-root', second]))).toMatchObject({ head, dataRoot: second, configDir: null })
    expect(readdirSync(world.root)).not.toContain('d2')
    await expectSameRefusal(world, ['restore', file])
    await expectSameRefusal(world, ['restore', join(world.config, 'system.yaml'), '--data-root', second])
    expect(await world.must(['restore', file, '--data-root', second])).toMatchObject({ head })
  })

  test('of repo sync --force says whether main would move', async () => {
    await using world = new World({ project: true })
    await world.start()
    await world.must(['repo', 'sync'])
    const stack = join(world.root, 'stack')
    const before = world.git(stack, 'rev-parse', 'HEAD')
    const force = ['repo', 'sync', 'stack', '--force']
    expect((await world.run(dry(force))).stdout).toBe('main of stack would stay where it is\n')
    world.git(stack, 'commit', '-q', '--amend', '-m', 'rewritten')
    expect((await world.run(dry(force))).stdout).toContain(`would move main of stack from ${before.slice(0, 12)} to main of `)
    expect(await world.must(['repo', 'list'])).toMatchObject([{ main: before, mainDiverged: true }])
    expect(await world.must(force)).toMatchObject([{ main: world.git(stack, 'rev-parse', 'HEAD') }])
    expect((await world.json(dry(['repo', 'sync', 'none', '--force']))).code).toBe(4)
    expect((await world.json(dry(['repo', 'sync']))).code).toBe(2)
  })
})
