import { spawnSync } from 'node:child_process'
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { ACME, createWorld, refusalOf, swap, SYSTEM } from './world.ts'

describe('loading', () => {
  it('resolves the acceptance configuration, with every default', async () => {
    const world = createWorld()
    const { system, businesses } = await world.load()
    expect(system).toEqual({
      founder: 'ada',
      dataRoot: join(world.root, 'd'),
      model: 'claude-haiku-4-5',
      families: { opus: ['claude-opus-*'], sonnet: ['claude-sonnet-*'] },
      harnesses: {},
      keepRunsMs: 30 * 86_400_000,
      bwrap: null,
      limits: {
        prepareTimeoutMs: 300_000,
        brokerTries: 30,
        brokerRetryMs: 1000,
        pushBytes: 256 * 1024 ** 2,
        pushUnpackedBytes: 512 * 1024 ** 2,
        pushObjects: 200_000,
      },
    })
    const acme = businesses.get('acme')
    expect(acme?.projects).toEqual({ stack: { root: join(world.root, 'stack'), branch: 'main', resources: {} } })
    expect([...(acme?.instances ?? [])]).toEqual(['pm', 'coder', 'reviewer', 'cto'].map((role) => [role, { role }]))
    expect(acme?.launch).toEqual({ by: 'pm', instances: ['coder', 'reviewer', 'cto'], max: { opus: 1, sonnet: 1 } })
    expect(acme?.roles.coder).toEqual({
      grants: ['git.push.working', 'review.request'],
      harness: 'script',
      model: 'claude-sonnet-5-5',
      limits: {
        tools: [],
        memoryBytes: null,
        pids: 1024,
        cpus: null,
        turnTimeoutMs: 1_800_000,
        idleTimeoutMs: 7_200_000,
        runTimeoutMs: 28_800_000,
        turnsPerHour: 60,
        enforce: 'available',
      },
      prompt: null,
      network: 'none',
      networkReason: null,
      env: {},
      credentials: {},
    })
    expect(acme?.roles.pm?.limits).toMatchObject({ idleTimeoutMs: null, runTimeoutMs: null, turnTimeoutMs: 1_800_000 })
    expect(acme?.roles.cto?.model).toBe('claude-haiku-4-5')
  })

  it('resolves what is written out: paths, durations, sizes, references, resources', async () => {
    const world = createWorld()
    world.write(
      world.system,
      `${SYSTEM}harnesses: { claude-code: { bin: ~/bin/claude, version: ">=2", paths: [/opt/x], models: [claude-haiku-4-5] } }\nkeepRuns: 0s\nsandbox: { bwrap: ~/bwrap }\nlimits: { pushBytes: 1024 }\n`,
    )
    world.write('c/prompts/cto.md', 'You are the CTO.')
    const cto = `  cto:
    prompt: prompts/cto.md
    network: host
    networkReason: it reads the news
    env: { PAGER: cat }
    credentials: { tracker: { env: TRACKER_TOKEN, expires: 2027-01-01 }, other: { file: ~/token } }`
    const limits =
      '      limits: { tools: [bash], memory: 4G, pids: 512, cpus: 1.5, turnTimeout: 90s, idleTimeout: none, turnsPerHour: 7, enforce: required }\nlaunch:'
    const text = swap(swap(ACME, '  cto:', cto), 'launch:', limits)
    world.write(world.acme, swap(text, 'roles:', '    resources: { board: [1, 2.5, null, "x"], yes: true, 7: seven }\nroles:'))
    const { system, businesses } = await world.load()
    expect(system.harnesses).toEqual({
      'claude-code': { bin: join(world.home, 'bin/claude'), version: '>=2', paths: ['/opt/x'], models: ['claude-haiku-4-5'] },
    })
    expect([system.keepRunsMs, system.bwrap, system.limits.pushBytes]).toEqual([0, join(world.home, 'bwrap'), 1024])
    const acme = businesses.get('acme')
    expect(acme?.projects.stack?.resources).toEqual({ board: [1, 2.5, null, 'x'], yes: true, '7': 'seven' })
    expect(acme?.roles.cto).toMatchObject({
      prompt: join(world.configDir, 'prompts/cto.md'),
      network: 'host',
      networkReason: 'it reads the news',
      env: { PAGER: 'cat' },
      credentials: {
        tracker: { env: 'TRACKER_TOKEN', file: null, expires: '2027-01-01' },
        other: { env: null, file: join(world.home, 'token'), expires: null },
      },
      limits: {
        tools: ['bash'],
        memoryBytes: 4 * 1024 ** 3,
        pids: 512,
        cpus: 1.5,
        turnTimeoutMs: 90_000,
        idleTimeoutMs: null,
        runTimeoutMs: 28_800_000,
        turnsPerHour: 7,
        enforce: 'required',
      },
    })
  })

  it('gives each role a seat, and those of instances on top', async () => {
    const world = createWorld()
    world.write(world.acme, swap(ACME, 'launch:', 'instances:\n  coder-2: { role: coder }\n  pm: { role: pm }\nlaunch:'))
    const instances = (await world.load()).businesses.get('acme')?.instances
    expect([...(instances ?? [])].map(([name, { role }]) => `${name}:${role}`)).toEqual([
      'pm:pm',
      'coder:coder',
      'reviewer:reviewer',
      'cto:cto',
      'coder-2:coder',
    ])
  })

  it('has records in which a name that an agent made up finds nothing', async () => {
    const { system, businesses } = await createWorld().load()
    const acme = businesses.get('acme')
    for (const record of [system.families, acme?.roles, acme?.projects, acme?.launch.max])
      expect((record as Record<string, unknown>).constructor).toBeUndefined()
    expect(acme?.roles.pm).toBeDefined() // the control
  })

  it('reads anchors and comments, and a file in flow style', async () => {
    const world = createWorld()
    world.write(world.acme, 'version: 1 # one\nroles:\n  pm: &pm { grants: [role.launch] }\n  cto: *pm\nlaunch: { by: pm }\n')
    expect((await world.load()).businesses.get('acme')?.roles.cto?.grants).toEqual(['role.launch'])
  })
})

describe('problems', () => {
  it('are reported of all files together, in order, and one does not hide another', async () => {
    const world = createWorld()
    world.write(world.system, `${SYSTEM}modle: x\n`)
    world.write(world.acme, swap(swap(ACME, '"reviewer", "cto"', '"reviewr", "cto"'), 'opus: 1', 'opus: many'))
    world.write('c/businesses/beta.yaml', 'version: 1\nroles: { pm: {} }\nlaunch: { by: pm }\n')
    const problems = await world.problems()
    expect(problems.map(({ file, line, path }) => [file.split('/').at(-1), line, path])).toEqual([
      ['system.yaml', 8, 'modle'],
      ['acme.yaml', 28, 'launch.instances.1'],
      ['acme.yaml', 30, 'launch.max.opus'],
      ['beta.yaml', 3, 'launch.by'],
    ])
    const error = await refusalOf(world.load())
    expect([error.code, error.hint]).toEqual(['config-invalid', 'mosaic config check'])
    expect(error.message).toContain('(4 mistakes)')
    expect(error.message).toContain(`${world.system}:8:1: modle: unknown key modle; did you mean model?`)
  })

  it('in a broken system file do not make false ones in businesses', async () => {
    const world = createWorld()
    world.write(world.system, 'version: [\n')
    expect(new Set((await world.problems()).map(({ file }) => file))).toEqual(new Set([world.system]))
  })

  it.each([
    ['Acme.yaml', /is no id/],
    ['host.yaml', /host is reserved/],
    ['beta.yml', /expected the ending .yaml/],
  ])('a business file called %s', async (name, message) => {
    const world = createWorld()
    const file = world.write(`c/businesses/${name}`, ACME.replace('ROOT/stack', 'ROOT/other'))
    const [problem, ...others] = await world.problems()
    expect(problem).toMatchObject({ file, line: 1, column: 1, path: '' })
    expect(problem?.message).toMatch(message)
    expect(others).toEqual([])
  })

  it('other names in the folder are not ours', async () => {
    const world = createWorld()
    for (const name of ['.acme.yaml.swp', 'acme.yaml~', 'README', '.x.yaml']) world.write(`c/businesses/${name}`, '[')
    expect([...(await world.load()).businesses.keys()]).toEqual(['acme'])
  })

  it('a file that is no UTF-8, too large, a folder, a FIFO or empty', async () => {
    const world = createWorld()
    writeFileSync(world.acme, Buffer.from([0x76, 0xff, 0xfe]))
    expect((await world.problems())[0]).toMatchObject({ file: world.acme, line: 1, column: 1, message: 'is not UTF-8 text' })
    writeFileSync(world.acme, '#'.repeat(1024 * 1024 + 1))
    expect((await world.problems())[0]?.message).toMatch(/larger than/)
    writeFileSync(world.acme, '')
    expect((await world.problems())[0]?.message).toBe('expected a map of keys, got nothing')
    rmSync(world.acme)
    mkdirSync(world.acme)
    expect((await world.problems())[0]?.message).toBe('is no regular file')
    rmSync(world.acme, { recursive: true })
    expect(spawnSync('mkfifo', [world.acme]).status).toBe(0)
    expect((await world.problems())[0]?.message).toBe('is no regular file')
  })

  it('aliases that unfold without end are refused, not unfolded', async () => {
    const world = createWorld()
    const bomb = [
      'a0: &a0 [x,x,x,x,x,x,x,x,x]',
      ...Array.from({ length: 9 }, (_, i) => `a${String(i + 1)}: &a${String(i + 1)} [${Array.from({ length: 9 }, () => `*a${String(i)}`).join(',')}]`),
    ]
    world.write(world.acme, `${bomb.join('\n')}\n`)
    expect((await world.problems())[0]?.message).toMatch(/alias/)
    world.write(world.acme, swap(ACME, 'roles:', '    resources: &a { more: *a }\nroles:'))
    expect((await world.problems())[0]).toMatchObject({ file: world.acme, path: 'projects.stack.resources' })
  })
})

describe('no configuration', () => {
  it('is config-not-found, with the hint mosaic init', async () => {
    const world = createWorld()
    rmSync(world.acme)
    expect(await refusalOf(world.load())).toMatchObject({
      code: 'config-not-found',
      hint: 'mosaic init',
      message: `there is no configuration: ${world.configDir}/businesses:1:1: holds no business: no *.yaml file`,
    })
    rmSync(world.configDir, { recursive: true })
    const error = await refusalOf(world.load())
    expect(error).toMatchObject({
      code: 'config-not-found',
      message: `there is no configuration: ${world.system}:1:1: is missing`,
      data: { errors: [{ file: world.system, line: 1, column: 1 }] },
    })
  })
})

describe('the data root', () => {
  it('comes from --data-root, else MOSAIC_DATA, else the file, else XDG_DATA_HOME, else the home', async () => {
    const world = createWorld()
    const rootOf = async (more: Parameters<typeof world.load>[0]): Promise<string> => (await world.load(more)).system.dataRoot
    const env = { MOSAIC_DATA: '/tmp/mc-env', XDG_DATA_HOME: '/tmp/mc-xdg' }
    expect(await rootOf({ env, dataRoot: '/tmp/mc-flag' })).toBe('/tmp/mc-flag')
    expect(await rootOf({ env })).toBe('/tmp/mc-env')
    expect(await rootOf({ env: { MOSAIC_DATA: '~/e' } })).toBe(join(world.home, 'e'))
    expect(await rootOf({ env: { XDG_DATA_HOME: '/tmp/mc-xdg' } })).toBe(join(world.root, 'd'))
    world.write(world.system, swap(SYSTEM, 'dataRoot: ROOT/d\n', ''))
    expect(await rootOf({ env: { XDG_DATA_HOME: '/tmp/mc-xdg' } })).toBe('/tmp/mc-xdg/mosaic')
    expect(await rootOf({ env: { XDG_DATA_HOME: 'relative', MOSAIC_DATA: '' } })).toBe(join(world.home, '.local/share/mosaic'))
    expect(await rootOf({})).toBe(join(world.home, '.local/share/mosaic'))
  })

  it('that overlaps is refused wherever it comes from, through links too', async () => {
    const world = createWorld()
    const [problem] = await world.problems({ env: { MOSAIC_DATA: join(world.configDir, 'data') } })
    expect(problem).toMatchObject({ file: world.system, line: 3, path: 'dataRoot' })
    expect(problem?.message).toMatch(/overlaps the config root .* \(from \$MOSAIC_DATA\)$/)
    mkdirSync(join(world.root, 'stack'))
    symlinkSync(join(world.root, 'stack'), join(world.root, 'link'))
    expect((await world.problems({ dataRoot: join(world.root, 'link', 'data') })).map(({ path }) => path)).toEqual(['projects.stack.root'])
    await world.load({ dataRoot: join(world.root, 'stack-2') }) // the control: a name that begins alike
  })

  it('is at fault at the top of a system file that does not set it', async () => {
    const world = createWorld()
    world.write(world.system, swap(SYSTEM, 'dataRoot: ROOT/d\n', ''))
    expect((await world.problems({ dataRoot: world.configDir }))[0]).toMatchObject({ file: world.system, line: 1, column: 1, path: 'dataRoot' })
  })
})
