import { copyFileSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { packageRoot } from '../../src/core/paths.ts'
import { type Forked, slowestAnswer } from '../helpers/meanwhile.ts'
import { toBusiness } from '../helpers/seats.ts'
import { World } from '../helpers/world.ts'

const FORKS = join(packageRoot(), 'fixtures', 'sessions', 'forks.py')
const HELPER_PIDS = 256
const SESSION_PIDS = 1024

test("a fork bomb that an agent planted as a filter of its clone is harmless to the next launch's look at it, and to the founder's", async () => {
  await using world = new World({ project: true })
  world.system.limits = { prepareTimeout: '8s' }
  world.configure()
  await world.start()
  const founder = await world.founder()
  const { envRoot } = await founder.session('coder')
  const clone = join(envRoot, 'workspace', 'stack')
  copyFileSync(FORKS, join(envRoot, 'workspace', 'forks.py'))
  const plant = async (filter: string): Promise<void> => {
    // as long as before, so that git has to compare what the filter makes of it
    writeFileSync(join(clone, 'file.txt'), 'two\n')
    writeFileSync(join(clone, '.gitattributes'), '*.txt filter=x\n')
    world.git(clone, 'config', 'filter.x.clean', filter)
    await founder.stop('coder')
  }
  // what it may reach, counted
  await plant(`python3 '${join(envRoot, 'workspace', 'forks.py')}' 1 > '${join(envRoot, 'workspace', 'most')}'; cat`)
  await founder.session('coder')
  const { most, refused } = JSON.parse(readFileSync(join(envRoot, 'workspace', 'most'), 'utf8')) as Forked
  expect([most > 50, most < HELPER_PIDS, refused]).toEqual([true, true, 'EAGAIN'])
  // the real thing
  await plant('b() { b | b & }; b')
  const launch = founder.session('coder')
  expect(await slowestAnswer(founder, launch)).toBeLessThan(1000)
  await launch
  // that look failed or was cut off, or the bomb went out: whatever it was, the launch went on
  const looks = (await founder.log({ event: 'checkout-kept' })).map(({ reason }) => reason)
  expect([looks.length, ['hung', 'dirty', 'unreadable']]).toEqual([2, expect.arrayContaining(looks)])
  await founder.stop('coder')
  const listed = world.must(['env', 'list'])
  expect(await slowestAnswer(founder, listed)).toBeLessThan(1000)
  await listed
})

test('a fork bomb in a session that was configured with no limit ends at the default, and the host answers within a second', async () => {
  await using world = new World()
  world.business = toBusiness({ coder: {} })
  world.configure()
  await world.start()
  const founder = await world.founder()
  const { envRoot } = await founder.session('coder')
  copyFileSync(FORKS, join(envRoot, 'workspace', 'forks.py'))
  const forked = founder.ask('coder', 'RUN python3 forks.py 2')
  expect(await slowestAnswer(founder, forked)).toBeLessThan(1000)
  const { most, refused } = JSON.parse(await forked) as Forked
  expect([most > 100, most < SESSION_PIDS, refused]).toEqual([true, true, 'EAGAIN'])
  // the real thing, until it is stopped
  await founder.send('coder', 'RUN b() { b | b & }; b; sleep 2')
  const stopped = founder.stop('coder', 2000)
  expect(await slowestAnswer(founder, stopped)).toBeLessThan(1000)
  await stopped
})
