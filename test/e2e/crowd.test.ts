import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { packageRoot } from '../../src/core/paths.ts'
import type { RunRow } from '../../src/protocol/rows.ts'
import { toBusiness } from '../helpers/seats.ts'
import { PROGRAM, until, World } from '../helpers/world.ts'

/** A host that may open so many descriptors, and no more. */
async function startSmall(world: World, openFiles: number): Promise<AsyncDisposable> {
  const host: ChildProcess = spawn('sh', ['-c', `ulimit -n ${String(openFiles)}; exec '${process.execPath}' '${PROGRAM}' bus start --business acme`], {
    env: world.env,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = once(host, 'exit')
  let said = ''
  await new Promise<void>((resolve, reject) => {
    host.stdout?.setEncoding('utf8').on('data', (text: string) => {
      said += text
      if (/^ready/m.test(said)) resolve()
    })
    void ended.then(() => reject(new Error(`the host ended: ${said}`)))
  })
  return {
    async [Symbol.asyncDispose]() {
      host.kill('SIGTERM')
      await ended
    },
  }
}

const OPEN_FILES = 1024
const script = (name: string): string => join(packageRoot(), 'fixtures', 'sessions', name)
const workspace = ({ envRoot }: RunRow, name: string): string => join(envRoot, 'workspace', name)

test('a session that opens connections without a word, also through children that are gone, takes its own places on the bus, not those of others', async () => {
  await using world = new World()
  world.business = toBusiness({ crowd: {}, other: {} })
  world.configure()
  await using _host = await startSmall(world, OPEN_FILES)
  const founder = await world.founder()
  const crowd = await founder.session('crowd')
  copyFileSync(script('crowd.py'), workspace(crowd, 'crowd.py'))
  const answer = founder.ask('crowd', 'RUN python3 crowd.py /run/mosaic/bus.sock 600 6 hidden')
  await until('the crowd is there', () => existsSync(workspace(crowd, 'crowded')))
  // another gets in, claims its role and works
  await founder.session('other')
  expect(await founder.ask('other', 'SAY here')).toBe('here')
  expect(existsSync(workspace(crowd, 'crowded'))).toBe(true)
  const held = Number(await answer)
  // 16 places, of which its runner has one; and the 16 of unknown peers, for children that were gone before they were looked at
  expect([held >= 15, held <= 31]).toEqual([true, true])
  await founder.stop('other')
  await founder.stop('crowd')
})

test('200 idle clients of launch.sock in one session and a good one: it gets its launch', async () => {
  await using world = new World()
  world.business = toBusiness({ pm: { grants: ['role.launch'] }, coder: {} }, { by: 'pm' })
  world.configure()
  await using _host = await startSmall(world, OPEN_FILES)
  const founder = await world.founder()
  const pm = await founder.session('pm')
  copyFileSync(script('crowd.py'), workspace(pm, 'crowd.py'))
  const answer = founder.ask(
    'pm',
    'RUN (python3 crowd.py /run/mosaic/launch.sock 200 6 > held &) ; until [ -e crowded ]; do sleep 0.1; done\nTOOL launch {"instance":"coder"}\nRUN until [ -s held ]; do sleep 0.1; done; cat held',
  )
  expect(await answer).toMatch(/"instance": ?"coder"[^]*\n200$/)
  for (const name of ['coder', 'pm']) await founder.stop(name)
})
