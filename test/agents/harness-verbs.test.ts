import { readdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { expect, test } from 'vitest'
import { openModelApi } from '../../fixtures/agents/model-api.ts'
import { AGENT_BINS } from '../../fixtures/agents/stage.ts'
import { World } from '../helpers/world.ts'
import { keysSeen, REAL_KEY } from './company.ts'

interface ListRow {
  readonly harness: string
  readonly version: string | null
  readonly credential: string | null
  readonly code: string | null
}
interface ProbeRow {
  readonly harness: string
  readonly ok: boolean
  readonly code: string | null
  readonly answer: string
  readonly requests: number
}

const left = (): string[] => readdirSync(tmpdir()).filter((name) => name.startsWith('mosaic-probe-'))

function createWorld(): World {
  const world = new World()
  world.system.harnesses = Object.fromEntries(Object.entries(AGENT_BINS).map(([name, bin]) => [name, { bin }]))
  world.configure()
  return world
}

test('mosaic harness list names the programs, their versions and the credential', async () => {
  await using world = createWorld()
  const list = async (env: NodeJS.ProcessEnv): Promise<ListRow[]> => (await world.json(['harness', 'list'], { env })).data
  expect(await list({ CLAUDE_CODE_OAUTH_TOKEN: 'stand-in' })).toMatchObject([
    { harness: 'script', version: null, credential: null, code: null },
    { harness: 'claude-code', version: '2.1.332 (Claude Code)', credential: 'CLAUDE_CODE_OAUTH_TOKEN', code: null },
    { harness: 'pi', version: '0.74.2', credential: 'CLAUDE_CODE_OAUTH_TOKEN', code: null },
  ])
  expect((await list({})).map(({ code }) => code)).toEqual([null, 'no-session-credential', 'no-session-credential'])
})

test.each(['claude-code', 'pi'])('mosaic harness probe %s: one turn through sandbox and gateway, one request, and nothing is left', async (harness) => {
  await using world = createWorld()
  await using api = await openModelApi()
  const env = { ANTHROPIC_API_KEY: REAL_KEY, ANTHROPIC_BASE_URL: api.address }
  const before = left()
  const probed = await world.json(['harness', 'probe', harness], { env })
  expect(probed).toMatchObject({ code: 0, data: [{ harness, ok: true, code: null, answer: 'no script', requests: 1 }] })
  expect(probed.stderr).toContain(`${harness}: one request to claude-haiku-4-5`)
  expect(keysSeen(api)).toEqual([REAL_KEY])
  const [row]: ProbeRow[] = (await world.json(['harness', 'probe', harness])).data
  expect(row).toMatchObject({ ok: false, code: 'no-session-credential', requests: 0 })
  expect(left()).toEqual(before)
})
