import { chmod, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { availabilityOf } from '../../src/harness/availability.ts'
import { findHarness } from '../../src/harness/registry.ts'
import { createVersions } from '../../src/harness/version.ts'

let dir: string

beforeEach(async () => {
  dir = await realpath(await mkdtemp(join(tmpdir(), 'mrl-')))
})
afterEach(() => rm(dir, { recursive: true, force: true }))

async function program(name: string, version: string): Promise<string> {
  const path = join(dir, name)
  await writeFile(path, `#!/bin/sh\nprintf '  ${version}\\nmore\\n'\n`)
  await chmod(path, 0o755)
  return path
}

const none = { bin: null }
const deps = { versionOf: createVersions() }
const KEY = { ANTHROPIC_API_KEY: 'k' }

describe('the order of the gate: program, then credential', () => {
  test('script is always there', async () => {
    expect(await availabilityOf(deps, 'script', none, {})).toMatchObject({ ok: true, located: { bin: null } })
  })

  test('a harness that nobody knows is missing', async () => {
    expect(await availabilityOf(deps, 'nothing', none, {})).toEqual({ ok: false, code: 'harness-missing', why: 'there is no harness nothing' })
  })

  test('claude-code: first the program, …', async () => {
    expect(await availabilityOf(deps, 'claude-code', { bin: join(dir, 'no') }, {})).toEqual({
      ok: false,
      code: 'harness-missing',
      why: `${join(dir, 'no')} is no program that the bus host can run`,
    })
    expect(await availabilityOf(deps, 'claude-code', none, { PATH: dir })).toEqual({
      ok: false,
      code: 'harness-missing',
      why: 'no claude is on the PATH of the bus host',
    })
  })

  test.each([[{}], [{ ANTHROPIC_AUTH_TOKEN: 'stand-in' }], [{ ANTHROPIC_BASE_URL: 'http://localhost' }], [{ ANTHROPIC_API_KEY: '' }]])(
    '… then its credential: %j holds none',
    async (env) => {
      const bin = await program('claude', '2.1.0 (Claude Code)')
      expect(await availabilityOf(deps, 'claude-code', { bin }, env)).toEqual({
        ok: false,
        code: 'no-session-credential',
        why: "the bus host has none of CLAUDE_CODE_OAUTH_TOKEN, ANTHROPIC_API_KEY, ANTHROPIC_AUTH_TOKEN with ANTHROPIC_BASE_URL; the bus unit's EnvironmentFile sets one when the bus starts",
      })
    },
  )

  test.each([[KEY], [{ CLAUDE_CODE_OAUTH_TOKEN: 't' }], [{ ANTHROPIC_AUTH_TOKEN: 't', ANTHROPIC_BASE_URL: 'u' }]])('… and %j is one', async (env) => {
    const bin = await program('claude', '2.1.0 (Claude Code)')
    expect(await availabilityOf(deps, 'claude-code', { bin }, env)).toMatchObject({ ok: true, located: { bin, version: '2.1.0 (Claude Code)' } })
  })
})

describe('locate', () => {
  const claude = findHarness('claude-code')

  test('$MOSAIC_CLAUDE_BIN, else the configured program, else PATH; the version is its trimmed line', async () => {
    const onPath = await program('claude', '1.0')
    const configured = await program('configured', '2.0')
    const named = await program('named', '3.0 (Claude Code)')
    const env = { PATH: `/nonexistent:${dir}` }
    expect(await claude?.locate(none, env, deps.versionOf)).toMatchObject({ bin: onPath, version: '1.0' })
    expect(await claude?.locate({ bin: configured }, env, deps.versionOf)).toMatchObject({ bin: configured, version: '2.0' })
    expect(await claude?.locate({ bin: configured }, { ...env, MOSAIC_CLAUDE_BIN: named }, deps.versionOf)).toMatchObject({
      bin: named,
      version: '3.0 (Claude Code)',
    })
    expect(await claude?.locate({ bin: configured }, { ...env, MOSAIC_CLAUDE_BIN: join(dir, 'gone') }, deps.versionOf)).toBeNull()
  })

  test('a link is followed to the file that is bound; what cannot be run is none', async () => {
    const bin = await program('real', '1.0')
    await symlink(bin, join(dir, 'claude'))
    expect((await claude?.locate(none, { PATH: dir }, deps.versionOf))?.programs).toEqual([{ source: bin, dest: '/opt/mosaic/claude-code/claude' }])
    await chmod(bin, 0o644)
    expect(await claude?.locate(none, { PATH: dir }, deps.versionOf)).toBeNull()
    expect(await claude?.locate({ bin: dir }, {}, deps.versionOf)).toBeNull()
  })

  test('a program that fails has no version', async () => {
    const bin = await program('claude', '1.0')
    await writeFile(bin, '#!/bin/sh\nexit 1\n')
    expect(await claude?.locate({ bin }, {}, deps.versionOf)).toMatchObject({ bin, version: null })
  })

  test('pi: the node_modules directory around it is what it needs', async () => {
    const { mkdir } = await import('node:fs/promises')
    const home = join(dir, 'lib', 'node_modules', '@scope', 'pi', 'dist')
    await mkdir(home, { recursive: true })
    await writeFile(join(home, 'cli.js'), '#!/bin/sh\necho 0.74.2\n', { mode: 0o755 })
    await symlink(join(home, 'cli.js'), join(dir, 'pi'))
    const located = await findHarness('pi')?.locate(none, { PATH: dir }, deps.versionOf)
    expect(located).toMatchObject({ version: '0.74.2', programs: [{ source: join(dir, 'lib', 'node_modules'), dest: '/opt/mosaic/pi/node_modules' }] })
  })
})
