import { copyFileSync, existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { packageRoot } from '../../src/core/paths.ts'
import { keysSeen, liveRun, openCompany, REAL_KEY, script } from './company.ts'

const SECRET = 'a secret of the founder'
const TOKEN = 'the-token-of-another-tool'
const TRACKER = 'the-token-of-the-pm'

const quoted = (words: readonly string[]): string => words.map((word) => `'${word}'`).join(' ')

/** Every file below a directory that can be read as a file. */
const filesBelow = (dir: string): string[] =>
  readdirSync(dir, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile() && entry.name !== 'node')
    .map((entry) => join(entry.parentPath, entry.name))

const environmentOf = (pid: string): string => {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'latin1')
  } catch {
    return ''
  }
}

test('the shell of a Claude Code coder reaches nothing that is not its own, and the key is in no place of it', async () => {
  await using company = await openCompany(
    { pm: 'claude-code', coder: 'claude-code', reviewer: 'pi' },
    {
      env: { TRACKER_TOKEN: TRACKER },
      adapt(roles, world) {
        world.write(join(world.config, 'secret'), SECRET)
        world.write(join(world.home, '.config', 'tool', 'token'), TOKEN)
        if (roles.pm !== undefined) roles.pm.credentials = { tracker: { env: 'TRACKER_TOKEN' } }
      },
    },
  )
  const { world, api } = company
  await world.must(['launch', 'coder'])
  const [pm, coder] = [await liveRun(world, 'pm'), await liveRun(world, 'coder')]
  const out = [join(world.config, 'secret'), join(world.home, '.config', 'tool', 'token'), pm.runDir, join(world.data, 'mosaic.db'), join(world.root, 'stack')]
  // all of it is there, and the founder may read it
  expect(out.map((path) => existsSync(path))).toEqual(out.map(() => true))
  copyFileSync(join(packageRoot(), 'fixtures', 'agents', 'probe.sh'), join(coder.envRoot, 'workspace', 'probe.sh'))
  const words = [REAL_KEY.slice(0, 15), REAL_KEY.slice(15), ...out, world.data]
  const answer = await world.ask('coder', script(`CALL Bash ${JSON.stringify({ command: `sh probe.sh ${quoted(words)} the-token-of-the"-pm"` })}`))
  const tried = Object.fromEntries(
    [...answer.matchAll(/^(?:last tool result: )?(.+): (yes|no)$/gm)].map(([, what = '', outcome = '']) => [what, outcome] as const),
  )
  expect(tried).toEqual({
    'read secret': 'no',
    'read token': 'no',
    'read pm': 'no',
    'read store': 'no',
    'read project': 'no',
    'read workspace': 'yes',
    'write project': 'no',
    // this world is below /tmp, and so is what of its path exists inside: in the sandbox's own /tmp
    'write data-root': 'yes',
    'write pm': 'no',
    'write /usr': 'no',
    'write /etc': 'no',
    'write workspace': 'yes',
    'write /tmp': 'yes',
    'write HOME': 'yes',
    'key in an environment': 'no',
    'run in an environment': 'yes',
    'key in a file': 'no',
    'token in the environment': 'no',
  })
  const workspace = join(coder.envRoot, 'workspace')
  expect([world.data, pm.runDir, join(world.root, 'stack'), '/tmp', workspace].filter((dir) => existsSync(join(dir, 'probe')))).toEqual([workspace])
  // the PM, whose token it is, has it: the control
  expect(await world.ask('pm', script('CALL Bash {"command":"test \\"$TRACKER_TOKEN\\" = the-token-of-the\\"-pm\\" && echo has it"}'))).toContain('has it')

  // what runs inside, as the founder sees it from outside; the host is the control
  const live = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  const inside = live.filter((pid) => environmentOf(pid).includes(`MOSAIC_RUN_ID=${coder.run}`))
  expect(inside.length).toBeGreaterThan(0)
  expect(inside.filter((pid) => environmentOf(pid).includes(REAL_KEY))).toEqual([])
  expect(live.filter((pid) => environmentOf(pid).includes(`ANTHROPIC_API_KEY=${REAL_KEY}`)).length).toBeGreaterThan(0)

  expect(keysSeen(api)).toEqual([REAL_KEY])
  await world.must(['stop', 'coder'])
  const transcript = (await world.run(['transcript', coder.run])).stdout
  expect(transcript).toContain('read workspace: yes')
  const written = filesBelow(world.data)
  expect(written.some((path) => path.endsWith('/transcript.jsonl')) && written.some((path) => path.endsWith('/runner.log'))).toBe(true)
  for (const value of [REAL_KEY, SECRET, TOKEN, TRACKER])
    expect([value, written.filter((path) => readFileSync(path).includes(value)), answer.includes(value), transcript.includes(value)]).toEqual([
      value,
      [],
      false,
      false,
    ])
})
