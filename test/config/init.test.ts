import { execFileSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, readdirSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { type InitRequest, writeTemplate } from '../../src/config/init.ts'
import { toId } from '../../src/config/names.ts'
import { TEMPLATES } from '../../src/config/templates.ts'
import { createWorld, refusalOf, type World } from './world.ts'

const none = { hasProgram: () => false }
const claude = { hasProgram: (program: string) => program === 'claude' }

function createEmpty(): { world: World; request: InitRequest; repository: string } {
  const world = createWorld()
  rmSync(world.configDir, { recursive: true })
  const repository = join(world.root, 'My Stack.js')
  mkdirSync(join(repository, 'src'), { recursive: true })
  execFileSync('git', ['init', '-q', '-b', 'trunk', repository], { env: { PATH: process.env.PATH, HOME: world.home } })
  return {
    world,
    repository,
    request: { configDir: world.configDir, home: world.home, env: {}, dir: join(repository, 'src'), template: 'solo', founder: 'ada' },
  }
}

const modeOf = (path: string): number => statSync(path).mode & 0o777

describe('writeTemplate', () => {
  it.each(
    TEMPLATES.flatMap((template) =>
      [none, claude].map((deps, at) => ({ template, deps, harness: at === 0 || template === 'demo' ? 'script' : 'claude-code' })),
    ),
  )('writes a $template that the loader takes, with the harness $harness', async ({ template, deps, harness }) => {
    const { world, request, repository } = createEmpty()
    const result = await writeTemplate(deps, { ...request, template })
    expect(result).toMatchObject({ business: 'main', harness, project: { id: 'my-stack-js', root: repository, branch: 'trunk' } })
    expect(result.notes.some((note) => note.includes('script'))).toBe(harness === 'script' && template !== 'demo')
    const config = await world.load()
    expect(config.system.founder).toBe('ada')
    const main = config.businesses.get('main')
    expect(main?.projects).toEqual({ 'my-stack-js': { root: repository, branch: 'trunk', resources: {} } })
    expect([...(main?.instances.keys() ?? [])].sort()).toEqual(
      { solo: ['coder', 'pm'], team: ['coder', 'coder-2', 'pm', 'reviewer'], demo: ['coder', 'pm', 'reviewer'] }[template],
    )
    expect(Object.values(main?.roles ?? {}).map((role) => role.harness)).toEqual(Object.keys(main?.roles ?? {}).map(() => harness))
    expect(result.files.every((file) => existsSync(file))).toBe(true)
    expect(result.files.map(modeOf)).toEqual(result.files.map(() => 0o600))
    expect([world.configDir, join(world.configDir, 'businesses'), join(world.configDir, 'prompts')].map(modeOf)).toEqual([0o700, 0o700, 0o700])
    expect(readdirSync(world.configDir).sort()).toEqual(['businesses', 'prompts', 'system.yaml'])
  })

  it('has no project where there is no repository, and says so', async () => {
    const { world, request } = createEmpty()
    const result = await writeTemplate(claude, { ...request, dir: world.home, business: 'acme' })
    expect([result.project, result.business]).toEqual([null, 'acme'])
    expect(result.notes).toEqual([`${world.home} is in no git repository: the business has no project yet`])
    expect((await world.load()).businesses.get('acme')?.projects).toEqual({})
  })

  it('makes no project of a repository around the config directory', async () => {
    const { world, request, repository } = createEmpty()
    const configDir = join(repository, '.config')
    const result = await writeTemplate(claude, { ...request, configDir })
    expect(result.project).toBeNull()
    expect(result.notes[0]).toContain(`overlaps ${configDir}`)
    expect(existsSync(world.configDir)).toBe(false)
  })

  it.each(['system.yaml', 'businesses/main.yaml', 'prompts/coder.md'])('never overwrites %s, and then writes nothing', async (name) => {
    const { world, request } = createEmpty()
    const file = world.write(join(world.configDir, name), 'mine')
    const error = await refusalOf(writeTemplate(none, request))
    expect([error.code, error.message]).toEqual(['config-exists', `${file} is there already, and is not overwritten`])
    expect(world.read(file)).toBe('mine')
    expect(existsSync(join(world.configDir, 'system.yaml'))).toBe(name === 'system.yaml')
    rmSync(world.configDir, { recursive: true })
    await writeTemplate(none, request) // the control
  })

  it('takes back what it wrote when it cannot go on', async () => {
    const { world, request } = createEmpty()
    mkdirSync(join(world.configDir, 'prompts'), { recursive: true })
    chmodSync(join(world.configDir, 'prompts'), 0o500)
    await expect(writeTemplate(none, request)).rejects.toThrow(/permission denied/)
    chmodSync(join(world.configDir, 'prompts'), 0o700)
    expect(readdirSync(world.configDir, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())).toEqual([])
    await writeTemplate(none, request) // the control
  })

  it.each([
    ['pm', 'me'],
    ['Ada Lovelace', 'ada-lovelace'],
    ['', 'me'],
    ['host', 'me'],
  ])('makes a founder of the user %j', async (founder, name) => {
    const { world, request } = createEmpty()
    await writeTemplate(none, { ...request, founder })
    expect((await world.load()).system.founder).toBe(name)
  })

  it('refuses a business that is no id as a usage error', async () => {
    const { request } = createEmpty()
    expect((await refusalOf(writeTemplate(none, { ...request, business: '../x' }))).code).toBe('usage')
  })
})

it('toId makes ids of any name', () => {
  expect(['Stack', '2048', '-x-', 'héllo wörld', '___', 'a'.repeat(40), 'host'].map((name) => toId(name, 'project'))).toEqual([
    'stack',
    'project',
    'x',
    'he-llo-wo-rld',
    'project',
    'a'.repeat(32),
    'project',
  ])
})
