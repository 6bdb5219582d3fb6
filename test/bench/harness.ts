import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { openModelApi } from '../../fixtures/agents/model-api.ts'
import { AGENT_BINS } from '../../fixtures/agents/stage.ts'
import type { Harness, LocatedHarness } from '../../src/harness/contract.ts'
import { HARNESSES } from '../../src/harness/registry.ts'
import { createVersions } from '../../src/harness/version.ts'
import { createBwrap } from '../../src/sandbox/bwrap.ts'
import { locateNode } from '../../src/sandbox/node-program.ts'
import { helperPlan, type SandboxPlan } from '../../src/sandbox/plan.ts'
import { spawnBwrap } from '../../src/sandbox/spawn.ts'
import { readSystem } from '../../src/sandbox/system.ts'
import type { Founder } from '../helpers/founder.ts'
import { World } from '../helpers/world.ts'
import { compare, type Measure, type Row, timed } from './measure.ts'

const MODEL = 'claude-sonnet-5-5'
const KEY = { variable: 'ANTHROPIC_API_KEY', value: 'sk-ant-api03-stand-in' } as const
const EXTENSION = 'provider.mjs'

interface Bare {
  readonly prompt: string
  readonly toCommand: (located: LocatedHarness, dir: string) => readonly string[]
}

const script = (tool: string): string => `SCRIPT:\nCALL ${tool} {"command":"echo done"}\nSAY done`

/** Each program as a person runs it for one question, everything allowed. */
const BARE: Readonly<Record<string, Bare>> = {
  'claude-code': {
    prompt: script('Bash'),
    toCommand: ({ inside }) => [
      inside ?? '',
      ...['-p', '--output-format', 'stream-json', '--verbose', '--permission-mode', 'bypassPermissions', '--model', MODEL],
    ],
  },
  pi: {
    prompt: script('bash'),
    toCommand: ({ inside }, dir) => ['node', inside ?? '', '-p', '--provider', 'anthropic', '--model', MODEL, '--extension', join(dir, EXTENSION)],
  },
}

/** The bare program in bubblewrap with the real policy, but the loopback that its model is on: from spawn to its end, in ms. */
async function openBareFloor(harness: Harness, { prompt, toCommand }: Bare, address: string): Promise<{ readonly measure: Measure } & Disposable> {
  const forbidden = { trees: [], home: '/nonexistent' }
  const [bwrap, node] = [createBwrap(null), await locateNode(forbidden)]
  const located = await harness.locate({ bin: AGENT_BINS[harness.name] ?? '' }, process.env, createVersions())
  if (located === null) throw new Error(`${harness.name} is not there`)
  const dir = mkdtempSync('/tmp/mb-')
  writeFileSync(join(dir, EXTENSION), `export default (pi) => pi.registerProvider('anthropic', { baseUrl: ${JSON.stringify(address)} })\n`)
  const session = { state: join(dir, 'state'), model: MODEL, modelSocket: null } as Parameters<Harness['environment']>[0]
  const env = { ...harness.environment(session, { located, placeholder: KEY }), ANTHROPIC_BASE_URL: address, HOME: dir }
  mkdirSync(session.state)
  const measure = async (): Promise<number> => {
    const base = { system: readSystem({}), uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0, env, forbidden, cwd: dir }
    const offline = helperPlan({ ...base, programs: [...node.programs, ...located.programs], binds: [{ bind: { path: dir }, readOnly: false }] })
    const plan: SandboxPlan = { ...offline, network: 'host' }
    return await timed(async () => {
      const command = [...toCommand(located, dir), prompt]
      const { child, block } = await spawnBwrap(bwrap, { plan, command, lockFd: null, stdout: 'pipe', stderr: 'pipe' })
      block.end('x')
      const [stdin, stdout, stderr] = child.stdio
      stdin?.end()
      let said = ''
      for (const stream of [stdout, stderr]) stream?.on('data', (chunk: Buffer) => (said += chunk.toString()))
      await child.closed
      if (child.exitCode !== 0 || !said.includes('done')) throw new Error(`the bare ${harness.name} ended with ${String(child.exitCode)}: ${said.slice(-500)}`)
    })
  }
  return { measure, [Symbol.dispose]: () => rmSync(dir, { recursive: true, force: true }) }
}

/** From the launch to the answer; its stop is not measured. */
async function launchAndAsk(founder: Founder, prompt: string): Promise<number> {
  const ms = await timed(async () => {
    await founder.launch('coder')
    const answer = await founder.ask('coder', prompt)
    if (answer !== 'done') throw new Error(`the answer was ${answer}`)
  })
  await founder.stop('coder')
  return ms
}

async function compareWithBare(harness: Harness, bare: Bare): Promise<Row> {
  await using api = await openModelApi()
  using floor = await openBareFloor(harness, bare, api.address)
  await using world = new World()
  world.system.harnesses = { [harness.name]: { bin: AGENT_BINS[harness.name] ?? '' } }
  const roles = world.business.roles as Record<string, { vars: Record<string, unknown> }>
  if (roles.coder !== undefined) roles.coder.vars.harness = harness.name
  world.configure()
  await world.start({ env: { [KEY.variable]: KEY.value, ANTHROPIC_BASE_URL: api.address } })
  const founder = await world.founder()
  const row = `${harness.name}: launch, one tool call, answer / the bare program in a sandbox`
  return await compare({ row, unit: 'ms', gate: null, goal: null, ours: () => launchAndAsk(founder, bare.prompt), floor: floor.measure })
}

/** What a session of each real program costs beside the program itself. */
export async function harness(): Promise<Row[]> {
  const rows: Row[] = []
  for (const each of HARNESSES) {
    const bare = BARE[each.name]
    if (bare === undefined) continue
    if (existsSync(AGENT_BINS[each.name] ?? '')) rows.push(await compareWithBare(each, bare))
    else process.stderr.write(`${each.name} is not measured: it is not there (npm run agents)\n`)
  }
  return rows
}
