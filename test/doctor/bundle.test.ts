import { mkdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createScrubber } from '../../src/doctor/scrub.ts'
import { MARKER } from '../../src/service/unit.ts'
import { World } from '../helpers/world.ts'

let world: World
beforeEach(() => {
  world = new World()
})
afterEach(() => world[Symbol.asyncDispose]())

const SECRETS = {
  variable: 'stand-in-oauth-5f1c',
  named: 'stand-in "tracker" 77',
  file: 'stand-in-deploy-9a2b',
  unit: 'stand-in-unit-c3d4',
  role: 'stand-in-role-env-e5f6',
  resource: 'stand-in-resource-0718',
  capability: 'ab'.repeat(32),
  url: 'stand-in-user:pass@',
}

test('a bug report has checks, machine, configuration and log, and no secret in any spelling', async () => {
  const file = world.write(join(world.root, 'deploy'), `${SECRETS.file}\n`)
  const pm = (world.business.roles as Record<string, Record<string, unknown>>).pm ?? {}
  pm.env = { GREETING: SECRETS.role }
  pm.credentials = { tracker: { env: 'TRACKER' }, deploy: { file } }
  world.configure()
  world.write(
    join(world.home, '.config/systemd/user/mosaic-acme.service'),
    `${MARKER}\n[Service]\nExecStart=/usr/bin/node x\nEnvironmentFile=${world.write(join(world.root, 'acme.env'), `PLAIN_NAME=${SECRETS.unit}\n`)}\n`,
  )
  mkdirSync(join(world.data, 'bus-host'), { recursive: true, mode: 0o700 })
  const lines = [
    { msg: 'harmless line', port: 1234 },
    { msg: 'said', text: `token ${SECRETS.variable} and ${SECRETS.named}`, deeper: JSON.stringify({ x: SECRETS.named }) },
    {
      msg: 'encoded',
      base64: Buffer.from(SECRETS.file).toString('base64'),
      url: `https://${SECRETS.url}example.invalid/?q=${encodeURIComponent(SECRETS.named)}`,
    },
    { msg: 'cap', cap: SECRETS.capability, unit: SECRETS.unit, key: 'sk-ant-api03-abcdefgh' },
  ]
  world.write(join(world.data, 'bus-host', 'host.log'), lines.map((line) => `${JSON.stringify(line)}\n`).join(''))
  const path = join(world.root, 'report.json')
  const { code, stderr } = await world.run(['doctor', 'config', 'git', '--bundle', path], {
    env: { CLAUDE_CODE_OAUTH_TOKEN: SECRETS.variable, TRACKER: SECRETS.named, ORDINARY: 'ordinary-value' },
  })
  expect([code, stderr]).toEqual([0, expect.stringContaining(`wrote ${path}`)])
  const text = readFileSync(path, 'utf8')
  for (const part of ['harmless line', '"port":1234', 'git version', 'claude-opus-5-5', '"TRACKER"', 'CLAUDE_CODE_OAUTH_TOKEN', 'GREETING'])
    expect(text.replaceAll('\\"', '"')).toContain(part)
  for (const secret of [
    ...Object.values(SECRETS),
    'stand-in',
    'ordinary-value',
    'sk-ant-api03-abcdefgh',
    Buffer.from(SECRETS.file).toString('base64'),
    world.home,
  ])
    expect(text).not.toContain(secret)
  expect(statSync(path).mode & 0o777).toBe(0o600)
  const again = await world.json(['doctor', 'config', '--bundle', path])
  expect([again.code, again.error.code]).toEqual([3, 'config-exists'])
  expect(readFileSync(path, 'utf8')).toBe(text)
})

test('secrets are found inside other text, the longer before the shorter; short words stay', () => {
  const scrub = createScrubber({ home: '/home/ada', envs: [{ A_TOKEN: 'abcdef', B_TOKEN: 'abcdefghij', C_TOKEN: 'up', EDITOR: 'vim-editor' }], secrets: [] })
  expect(scrub({ 'x abcdefghij': ['-abcdefghij-', 'abcdef', 'up', 'vim-editor', '/home/ada/x', 7, null] })).toEqual({
    'x ***': ['-***-', '***', 'up', 'vim-editor', '~/x', 7, null],
  })
})
