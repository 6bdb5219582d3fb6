import { chmodSync, mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { runProgram } from '../../src/cli/program.ts'
import { ACME, createWorld, swap, type World } from './world.ts'

interface Ran {
  readonly exit: number
  readonly stdout: string
  readonly stderr: string
}

async function run(world: World, argv: readonly string[], more: NodeJS.ProcessEnv = {}): Promise<Ran> {
  const out = { stdout: '', stderr: '' }
  const sink = (name: keyof typeof out) => ({ write: (text: string) => void (out[name] += text) })
  const exit = await runProgram(argv, {
    version: '0.0.0',
    env: { MOSAIC_CONFIG: world.configDir, PATH: '/usr/bin:/bin', ...more },
    cwd: world.root,
    home: world.home,
    stdin: (async function* () {})(),
    stdout: sink('stdout'),
    stderr: sink('stderr'),
    onInterrupt: () => () => undefined,
  })
  return { exit, ...out }
}

const envelopeOf = ({ stdout }: Ran): { ok: boolean; data: unknown; error: { code: string; data: { errors: unknown[] } } } =>
  JSON.parse(stdout) as { ok: boolean; data: unknown; error: { code: string; data: { errors: unknown[] } } }

describe('config check', () => {
  it('lists the files of a valid configuration', async () => {
    const world = createWorld()
    expect(await run(world, ['config', 'check'])).toEqual({ exit: 0, stdout: `${world.system}\n${world.acme}\n`, stderr: '' })
    expect(envelopeOf(await run(world, ['config', 'check', '--json']))).toEqual({ ok: true, data: [{ file: world.system }, { file: world.acme }] })
  })

  it('prints one line a mistake, or the envelope with all of them; exit 3 both times', async () => {
    const world = createWorld()
    world.write(world.acme, swap(swap(ACME, '  by: "pm"', '  buy: "pm"'), 'opus: 1', 'opus: many'))
    const lines = [`${world.acme}:27:3: launch.buy: unknown key buy; did you mean by?`, `${world.acme}:30:11: launch.max.opus: expected an integer, got "many"`]
    expect(await run(world, ['config', 'check'])).toEqual({ exit: 3, stdout: '', stderr: `${lines.join('\n')}\n` })
    const json = await run(world, ['config', 'check', '--json'])
    expect([json.exit, envelopeOf(json).error.code, envelopeOf(json).error.data.errors.length]).toEqual([3, 'config-invalid', 2])
  })

  it('says that there is none', async () => {
    const world = createWorld()
    rmSync(world.configDir, { recursive: true })
    const ran = await run(world, ['config', 'check'])
    expect(ran.exit).toBe(3)
    expect(ran.stderr).toBe(`error: there is no configuration: ${world.system}:1:1: is missing\nhint: mosaic init\n`)
  })
})

describe('config explain, show, schema', () => {
  it('explain says value, file and line', async () => {
    const world = createWorld()
    expect((await run(world, ['config', 'explain', 'launch.max.opus'])).stdout).toBe(`launch.max.opus = 1   ${world.acme}:30\n`)
    expect((await run(world, ['config', 'explain', 'keepRuns'])).stdout).toBe('keepRuns = 30d   (default)\n')
    expect(envelopeOf(await run(world, ['config', 'explain', 'founder', '--json'])).data).toEqual({
      key: 'founder',
      value: 'ada',
      file: world.system,
      line: 2,
      origin: 'file',
    })
    expect((await run(world, ['config', 'explain', 'launch.max.opsu'])).exit).toBe(4)
  })

  it('show and schema print what programs can read', async () => {
    const world = createWorld()
    expect((await run(world, ['config', 'show'])).stdout).toContain('turnTimeout: 30m')
    expect((await run(world, ['config', 'schema'])).stdout).toMatch(/"additionalProperties": false/)
    expect((await run(world, ['config', 'schema', '--json'])).stdout).toMatch(/"additionalProperties":false/)
  })
})

describe('init', () => {
  it('writes a configuration that check takes, and never writes twice', async () => {
    const world = createWorld()
    rmSync(world.configDir, { recursive: true })
    mkdirSync(join(world.root, 'plain'))
    const first = await run(world, ['init', 'plain', '--template', 'team', '--business', 'two'])
    expect(first.exit).toBe(0)
    expect(first.stdout).toContain(`wrote ${world.configDir}/businesses/two.yaml\n`)
    expect(first.stderr).toMatch(/have the harness script/)
    expect(first.stderr).toMatch(/in no git repository/)
    expect(first.stderr).toMatch(/^note: claude-code is not here: npm install -g /m)
    expect(first.stderr).toMatch(/^note: (the sandbox works|no session can be launched yet): /m)
    expect((await run(world, ['config', 'check'])).exit).toBe(0)
    const again = await run(world, ['init', 'plain'])
    expect(again.exit).toBe(3)
    expect(again.stderr).toContain(world.system)
  })

  it('names the agent programs that it finds, and says which credential they need and how to make it', async () => {
    const world = createWorld()
    rmSync(world.configDir, { recursive: true })
    const bin = join(world.root, 'bin')
    chmodSync(world.write('bin/claude', '#!/bin/sh\necho "2.1.0 (Claude Code)"\n'), 0o755)
    const init = async (env: NodeJS.ProcessEnv): Promise<Ran> => {
      rmSync(world.configDir, { recursive: true, force: true })
      return await run(world, ['init', '--json'], { PATH: `${bin}:/usr/bin:/bin`, ...env })
    }
    const without = await init({})
    expect(without.stderr).toContain(`note: claude-code is ${bin}/claude, 2.1.0 (Claude Code); its credential: none is set\n`)
    expect(without.stderr).toContain('claude setup-token')
    expect(envelopeOf(without).data).toMatchObject({
      harness: 'claude-code',
      agents: [{ harness: 'claude-code', code: 'no-session-credential' }, { harness: 'pi' }],
    })
    const withOne = await init({ ANTHROPIC_API_KEY: 'stand-in' })
    expect(withOne.stderr).toContain('its credential: ANTHROPIC_API_KEY\n')
    expect(withOne.stderr).not.toContain('setup-token')
  })

  it('knows its templates', async () => {
    expect((await run(createWorld(), ['init', '--template', 'big'])).exit).toBe(2)
  })
})
